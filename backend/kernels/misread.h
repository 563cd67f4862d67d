// What faults make of a nest before the loop over it, so that the loops themselves need not ask.
#pragma once

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

}  // namespace refnpu
