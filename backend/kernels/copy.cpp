#include "kernels/copy.h"

#include <array>
#include <cstring>

#include "kernels/iterate.h"
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
    std::memmove(to, from, n * Size);
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, Size);
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
  const CastRow row = cast_row(nest.dtypes[0], nest.dtypes[1]);
  if (fault(Fault::copy_ignores_strides)) {
    row(nest.data[0], size_of(nest.dtypes[0]), nest.data[1], size_of(nest.dtypes[1]), nest.numel());
    return;
  }
  for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) {
    const bool dense = strides[1] == 0 && fault(Fault::copy_expanded_source_as_dense);
    const int64_t count = fault(Fault::copy_size_rounded_down) ? n / 4 * 4 : n;
    row(data[0], strides[0], data[1], dense ? size_of(nest.dtypes[1]) : strides[1], count);
  });
}

}  // namespace refnpu
