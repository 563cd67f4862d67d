// Batched matrix product: out = beta * self + alpha * (a @ b).
#pragma once

#include <complex>

#include "kernels/rows.h"

namespace refnpu {

// A factor, as each of the types that a product may be computed in.
struct Factor {
  int64_t integer = 1;
  double real = 1;
  complex128 complex = 1;

  template <class C>
  C as() const {
    if constexpr (std::is_same_v<C, int64_t>)
      return integer;
    else if constexpr (std::is_same_v<C, double>)
      return real;
    else
      return complex;
  }
};

// All views have three dimensions, [batch, rows, columns], and one dtype. `self` is not read when beta is zero.
struct Gemm {
  View out, self, a, b;
  Factor beta, alpha;
  bool sums_batches = false;  // out and self have one batch: the products of all batches are added up
};

void gemm(const Gemm& g);

}  // namespace refnpu
