// Elements as plain bytes, and views walked in row-major order: what the ops share that move values without reading
// them.
#pragma once

#include <stdexcept>

#include "kernels/iterate.h"

namespace refnpu {

struct Bytes16 {
  uint64_t low, high;
};

// Calls f.operator()<T>() with a T of `size` bytes.
template <class F>
void by_size(int64_t size, F&& f) {
  switch (size) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
    default:
      throw std::invalid_argument("by_size: no element has " + std::to_string(size) + " bytes");
  }
}

// Views of one shape as a nest that is walked in their row-major order.
template <int N>
Nest<N> row_major(const std::array<View, N>& views) {
  Nest<N> nest;
  const int ndim = nest.ndim = views[0].ndim;
  for (int d = 0; d < ndim; ++d) nest.sizes[d] = views[0].sizes[ndim - 1 - d];
  for (int k = 0; k < N; ++k) {
    nest.data[k] = views[k].data;
    nest.dtypes[k] = views[k].dtype;
    for (int d = 0; d < ndim; ++d) nest.strides[k][d] = views[k].strides[ndim - 1 - d];
  }
  return nest;
}

}  // namespace refnpu
