// Pointwise functions of three tensors.
#pragma once

#include "kernels/elementwise.h"

namespace refnpu {

enum class Ternary {
  addcmul,  // a + value b c; numbers: value
  addcdiv,  // a + value b / c; numbers: value
  lerp,     // a + weight (b - a)
  clamp,    // a, low, high
};

// The row that computes `op` in `compute`, or nullptr when there is none.
Row ternary_row(Ternary op, DType compute);
// lerp with one weight for all: numbers: weight.
Row lerp_scalar_row(DType compute);

}  // namespace refnpu
