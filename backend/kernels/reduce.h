// Reductions: many elements of one tensor into one, or into a value and an index.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

// `kept` walks the outputs: operand 0 is the input's first element of each, 1 and 2 are the outputs (either may be
// absent: no data pointer). The axes that fall into one output are in logical order, outermost first; strides in bytes.
struct Reduction {
  Nest<3> kept;
  int ndim = 0;
  std::array<int64_t, kMaxDims> sizes{};
  std::array<int64_t, kMaxDims> strides{};

  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }
};

enum class Total { sum, nansum, mean, prod };
enum class Truth { any, all, count };

// The input must have the output's dtype.
void reduce_total(const Reduction& r, Total op);
// Outputs: the value, the index (int64, in logical order). The first of equal elements wins, the first NaN wins over
// all.
void reduce_extreme(const Reduction& r, bool largest);
void reduce_truth(const Reduction& r, Truth op);
// The output is real. p may be infinite, zero or negative.
void reduce_norm(const Reduction& r, double p);
// Outputs: variance (or its root), mean. Divides by count - correction, or by zero where that is negative.
void reduce_variance(const Reduction& r, double correction, bool root);

}  // namespace refnpu
