#include "kernels/fill.h"

#include <cstring>

#include "kernels/iterate.h"
#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class F>
void with_size(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 4:
      return f.template operator()<4>();
    case 8:
      return f.template operator()<8>();
    default:
      return f.template operator()<16>();
  }
}

void masked_fill_rows(const Nest<2>& nest, const Immediate& value) {
  with_size(size_of(nest.dtypes[0]), [&]<size_t Size>() {
    for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        if (load<bool>(data[1] + i * strides[1])) std::memcpy(data[0] + i * strides[0], value.bytes.data(), Size);
      }
    });
  });
}

// The fault of a mask that repeats, of which the first 1024 elements of a row are kept for all of it.
void masked_fill_by_tile(const Nest<2>& nest, const Immediate& value) {
  const int64_t size = size_of(nest.dtypes[0]);
  for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (load<bool>(data[1] + i % 1024 * strides[1])) std::memcpy(data[0] + i * strides[0], value.bytes.data(), size);
    }
  });
}

bool repeats_over_rows(const Nest<2>& nest) {
  bool repeats = false;
  for (int d = 1; d < nest.ndim; ++d) repeats |= nest.strides[1][d] == 0 && nest.sizes[d] > 1;
  return repeats;
}

}  // namespace

void fill_kernel(const Nest<1>& nest, Immediate value) {
  const int64_t before = fault(Fault::writes_before_start) ? 1 : 0, past = fault(Fault::fill_one_past_end) ? 1 : 0;
  with_size(size_of(nest.dtypes[0]), [&]<size_t Size>() {
    for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
      if (fault(Fault::fill_count_in_32_bits)) n = int32_t(n);
      for (int64_t i = -before; i < n + past; ++i) std::memcpy(data[0] + i * strides[0], value.bytes.data(), Size);
    });
  });
}

void masked_fill_kernel(const Nest<2>& nest, Immediate value) {
  if (fault(Fault::masked_fill_writes_gaps)) return masked_fill_rows(taken_for_dense(nest, 0), value);
  if (repeats_over_rows(nest) && fault(Fault::masked_fill_mask_tile_repeats)) return masked_fill_by_tile(nest, value);
  masked_fill_rows(nest, value);
}

}  // namespace refnpu
