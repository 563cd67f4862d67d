#include "kernels/where.h"

#include <cstring>

#include "kernels/iterate.h"
#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

void where_rows(const Nest<4>& nest) {
  const int64_t size = size_of(nest.dtypes[0]);
  const bool in_pairs = size == 2 && fault(Fault::where_of_halves_odd_end);
  const bool in_words = size == 1 && fault(Fault::where_of_bytes_writes_words);
  const char* of_first_row = nullptr;  // the fault of a condition that is one column
  for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
    if (in_pairs && n > 128) n = n / 2 * 2;
    if (in_words && n > 64 && strides[0] == size) n = (n + 3) / 4 * 4;
    const bool is_column = strides[1] == 0 && n > 1 && fault(Fault::where_column_condition_of_first_row);
    if (is_column && !of_first_row) of_first_row = data[1];
    for (int64_t i = 0; i < n; ++i) {
      const int chosen = load<bool>(is_column ? of_first_row : data[1] + i * strides[1]) ? 2 : 3;
      std::memcpy(data[0] + i * strides[0], data[chosen] + i * strides[chosen], size);
    }
  });
}

}  // namespace

void where_kernel(const Nest<4>& nest) {
  if (fault(Fault::where_condition_strides_ignored)) return where_rows(taken_for_dense(nest, 1));
  where_rows(nest);
}

}  // namespace refnpu
