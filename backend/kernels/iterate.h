// The serial loop over a nest: every row of its innermost dimension, in memory order.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// Calls row(char* const* data, const int64_t* strides, int64_t n) for every row of dimension 0: `data[k]` is operand
// k's first element in the row, `strides[k]` its stride in bytes. A nest of no dimensions is one row of one element; a
// nest with an empty dimension has no rows.
template <int N, class Row>
void for_each_row(const Nest<N>& nest, Row&& row) {
  if (nest.numel() == 0) return;
  std::array<const char*, N> base;
  std::array<int64_t, N> inner{};
  for (int k = 0; k < N; ++k) {
    base[k] = nest.data[k] ? nest.data[k] : nest.immediates[k].bytes.data();
    inner[k] = nest.ndim > 0 ? nest.strides[k][0] : 0;
  }
  const int64_t n = nest.ndim > 0 ? nest.sizes[0] : 1;
  std::array<int64_t, kMaxDims> index{};
  std::array<char*, N> data;
  for (int k = 0; k < N; ++k) data[k] = const_cast<char*>(base[k]);
  for (;;) {
    row(data.data(), inner.data(), n);
    int d = 1;
    for (; d < nest.ndim; ++d) {
      for (int k = 0; k < N; ++k) data[k] += nest.strides[k][d];
      if (++index[d] < nest.sizes[d]) break;
      for (int k = 0; k < N; ++k) data[k] -= nest.strides[k][d] * nest.sizes[d];
      index[d] = 0;
    }
    if (d >= nest.ndim) return;
  }
}

}  // namespace refnpu
