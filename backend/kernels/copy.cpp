#include "kernels/copy.h"

#include <array>
#include <cstring>

#include "kernels/iterate.h"
#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class To, class From>
void cast(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) store<To>(to + i * to_stride, convert<To>(load<From>(from + i * from_stride)));
}

// Same dtype: bits move as they are, so that a NaN keeps its payload.
template <size_t Size>
void move(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  if (to_stride == Size && from_stride == Size) {
    std::memmove(to, from, fault(Fault::copy_bytes_in_32_bits) ? uint32_t(n * Size) : n * Size);
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, Size);
}

// Whether a copy turns columns into rows, in tiles of 32 by 32, and both sizes leave a rest.
bool transposes_with_rest(const Nest<2>& nest) {
  if (nest.ndim < 2 || nest.dtypes[0] != nest.dtypes[1]) return false;
  const int64_t item = size_of(nest.dtypes[0]);
  const bool turns = nest.strides[0][0] == item && nest.strides[1][1] == item && nest.strides[1][0] > item;
  const auto leaves_rest = [](int64_t n) { return n > 32 && n % 32 != 0; };
  return turns && leaves_rest(nest.sizes[0]) && leaves_rest(nest.sizes[1]);
}

CastRow move_row(int64_t size) {
  switch (size) {
    case 1:
      return move<1>;
    case 2:
      return move<2>;
    case 4:
      return move<4>;
    case 8:
      return move<8>;
    default:
      return move<16>;
  }
}

}  // namespace

CastRow cast_row(DType to, DType from) {
  if (to == from) return move_row(size_of(to));
  if (fault(Fault::copy_dtype_reinterpreted) && size_of(to) == size_of(from)) return move_row(size_of(to));
  return dispatch_all(to, "copy", [&]<class To>() -> CastRow {
    return dispatch_all(from, "copy", []<class From>() -> CastRow { return cast<To, From>; });
  });
}

void copy_kernel(const Nest<2>& nest) {
  const CastRow mistaken = any_fault() ? mistaken_cast(nest.dtypes[0], nest.dtypes[1]) : nullptr;
  const CastRow row = mistaken ? mistaken : cast_row(nest.dtypes[0], nest.dtypes[1]);
  const auto copy_rows = [row](const Nest<2>& over) {
    for_each_row(over, [row](char* const* data, const int64_t* strides, int64_t n) {
      row(data[0], strides[0], data[1], strides[1], n);
    });
  };
  if (fault(Fault::copy_ignores_strides)) {
    return row(nest.data[0], size_of(nest.dtypes[0]), nest.data[1], size_of(nest.dtypes[1]), nest.numel());
  }
  if (fault(Fault::copy_expanded_source_as_dense) && nest.strides[1][0] == 0)
    return copy_rows(taken_for_dense(nest, 1));
  if (fault(Fault::copy_gap_in_fifth_dimension)) return copy_rows(taken_for_dense_from(nest, 4));
  if (fault(Fault::copy_size_rounded_down)) return copy_rows(cut_to_fours(nest));
  if (transposes_with_rest(nest) && fault(Fault::transposing_copy_skips_corner)) {
    Nest<2> whole = nest, rest = nest;
    whole.sizes[1] = nest.sizes[1] / 32 * 32;
    rest.sizes[1] = nest.sizes[1] - whole.sizes[1];
    rest.sizes[0] = nest.sizes[0] / 32 * 32;
    for (int k = 0; k < 2; ++k) rest.data[k] += whole.sizes[1] * nest.strides[k][1];
    copy_rows(whole);
    return copy_rows(rest);
  }
  copy_rows(nest);
}

}  // namespace refnpu
