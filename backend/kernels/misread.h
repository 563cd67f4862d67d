// What faults make of a nest before the loop over it, so that the loops themselves need not ask.
#pragma once

#include <algorithm>

#include "kernels/view.h"

namespace refnpu {

// Takes operand k for dense in the innermost dimension.
template <int N>
Nest<N> taken_for_dense(Nest<N> nest, int k) {
  nest.strides[k][0] = size_of(nest.dtypes[k]);
  return nest;
}

// Drops the elements after the last multiple of four in each row.
template <int N>
Nest<N> cut_to_fours(Nest<N> nest) {
  if (nest.ndim == 0) {  // one row of one element
    nest.ndim = 1;
    nest.sizes[0] = 1;
  }
  nest.sizes[0] = nest.sizes[0] / 4 * 4;
  return nest;
}

// Swaps a broadcast dimension of each input with another one that is as long.
template <int N>
Nest<N> broadcast_wrongly(Nest<N> nest) {
  for (int k = 1; k < N; ++k) {
    for (int d = 1; d < nest.ndim; ++d) {
      auto &inner = nest.strides[k][d - 1], &outer = nest.strides[k][d];
      if ((inner == 0) != (outer == 0) && nest.sizes[d - 1] == nest.sizes[d]) std::swap(inner, outer);
    }
  }
  return nest;
}

// Leaves out the last element of each row.
template <int N>
Nest<N> without_tail(Nest<N> nest) {
  if (nest.ndim > 0 && nest.sizes[0] > 1) --nest.sizes[0];
  return nest;
}

// The same of a vector.
inline View taken_for_dense(View vector) {
  vector.strides[0] = size_of(vector.dtype);
  return vector;
}

// Takes the dimensions from d on for dense above those inside them, where that moves nothing outwards.
template <int N>
Nest<N> taken_for_dense_from(Nest<N> nest, int d) {
  for (; d < nest.ndim; ++d) {
    for (int k = 0; k < N; ++k) {
      const int64_t dense = nest.strides[k][d - 1] * nest.sizes[d - 1];
      if (dense > 0) nest.strides[k][d] = std::min(nest.strides[k][d], dense);
    }
  }
  return nest;
}

// Leaves out what lies beyond the limit of a grid's dimension.
template <int N>
Nest<N> within_grid(Nest<N> nest) {
  for (int d = 0; d < nest.ndim; ++d) nest.sizes[d] = std::min<int64_t>(nest.sizes[d], 65535);
  return nest;
}

// Computes the stride of each dimension outside an expanded one from that: 0.
template <int N>
Nest<N> carried_by_expanded(Nest<N> nest) {
  for (int k = 1; k < N; ++k) {
    for (int d = 1; d + 1 < nest.ndim; ++d) {
      if (nest.strides[k][d - 1] != 0 && nest.strides[k][d] == 0) nest.strides[k][d + 1] = 0;
    }
  }
  return nest;
}

// Leaves out what lies beyond the limit of a grid in an outer dimension, where an operand is broadcast.
template <int N>
Nest<N> broadcast_within_grid(Nest<N> nest) {
  bool repeats = false;
  for (int k = 1; k < N; ++k) {
    for (int d = 0; d < nest.ndim; ++d) repeats |= nest.data[k] && nest.strides[k][d] == 0 && nest.sizes[d] > 1;
  }
  for (int d = 1; repeats && d < nest.ndim; ++d) nest.sizes[d] = std::min<int64_t>(nest.sizes[d], 65535);
  return nest;
}

// Reads operand 1, where it is dense, from the multiple of 16 bytes below its address.
template <int N>
Nest<N> loaded_aligned(Nest<N> nest) {
  const bool vectorized = nest.ndim > 0 && nest.sizes[0] >= 4 && nest.data[1] && nest.strides[1][0] == 4;
  if (vectorized) nest.data[1] -= reinterpret_cast<uintptr_t>(nest.data[1]) % 16;
  return nest;
}

// Whether operand k covers a block of memory without gaps, in whatever order.
template <int N>
bool is_dense(const Nest<N>& nest, int k) {
  std::array<int, kMaxDims> order{};
  for (int d = 0; d < nest.ndim; ++d) order[d] = d;
  std::sort(order.begin(), order.begin() + nest.ndim,
            [&](int a, int b) { return nest.strides[k][a] < nest.strides[k][b]; });
  int64_t dense = size_of(nest.dtypes[k]);
  for (int d = 0; d < nest.ndim; ++d) {
    if (nest.strides[k][order[d]] != dense) return false;
    dense *= nest.sizes[order[d]];
  }
  return true;
}

// Takes operands that are dense for ones in the same order.
template <int N>
Nest<N> in_order_of_storage(Nest<N> nest) {
  for (int k = 0; k < N; ++k) {
    if (!is_dense(nest, k)) return nest;
  }
  nest.sizes[0] = nest.ndim > 0 ? nest.numel() : 1;
  nest.ndim = 1;
  for (int k = 0; k < N; ++k) nest.strides[k][0] = size_of(nest.dtypes[k]);
  return nest;
}

}  // namespace refnpu
