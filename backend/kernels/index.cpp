// Moves through index tensors: byte for byte, so one instance an element size serves every dtype.
#include "kernels/index.h"

#include <algorithm>

#include "kernels/index_loop.h"
#include "kernels/index_move.h"
#include "refnpu/fault.h"

namespace refnpu {

void index_read(const IndexedNest& given, int64_t element_size) {
  const bool wraps = !fault(Fault::negative_index_not_wrapped);
  IndexedNest nest = given;
  if (element_size == 1 && fault(Fault::index_reads_first_2048_bytes))
    nest.sizes[0] = std::min<int64_t>(nest.sizes[0], 2048);
  by_size(element_size, [&]<class T>() {
    for_each_indexed(nest, wraps, [](char* plain, char* indexed) { store(plain, load<T>(indexed)); });
  });
}

void index_write(const IndexedNest& given, int64_t element_size) {
  const bool wraps = !fault(Fault::negative_index_not_wrapped);
  IndexedNest nest = given;
  if (fault(Fault::index_writes_first_512)) nest.sizes[0] = std::min<int64_t>(nest.sizes[0], 512);
  by_size(element_size, [&]<class T>() {
    for_each_indexed(nest, wraps, [](char* plain, char* indexed) { store(indexed, load<T>(plain)); });
  });
}

void index_check(const View& index, int64_t size, bool negative_allowed, BadIndex* bad) {
  Nest<1> nest = row_major<1>({index});
  for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n && !bad->found; ++i) {
      const int64_t value = load_index(data[0] + i * strides[0], index.dtype);
      if (value < size && value >= (negative_allowed ? -size : 0)) continue;
      *bad = {1, value};
    }
  });
}

}  // namespace refnpu
