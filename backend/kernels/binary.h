// Pointwise arithmetic of two tensors.
#pragma once

#include "kernels/elementwise.h"

namespace refnpu {

enum class Binary {
  add,  // a + alpha b; numbers: alpha
  sub,  // a - alpha b; numbers: alpha
  mul,
  div,
  div_floor,
  div_trunc,
  remainder,
  fmod,
  pow,
  atan2,
  hypot,
  copysign,
  maximum,
  minimum,
  fmax,
  fmin,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  left_shift,   // numbers: width of the operands in bits, whether they are signed
  right_shift,  // the same
  threshold,    // a <= threshold ? value : b; numbers: threshold, value
  // Backward functions take (gradient, input or result).
  sigmoid_backward,
  tanh_backward,
  silu_backward,
  gelu_erf_backward,
  gelu_tanh_backward,
  mish_backward,
  hardswish_backward,
  hardsigmoid_backward,
  leaky_relu_backward,
  elu_backward,
  elu_backward_from_result,
  hardtanh_backward,
  softplus_backward,
  shrink_backward,
  logit_backward,
};

// The row that computes `op` in `compute`, or nullptr when there is none.
Row binary_row(Binary op, DType compute);
template <class T>
Row backward_row(Binary op);  // for T in float, double, complex64, complex128

// Of one input: sets the output (one bool, broadcast over the row) where an integer is zero, and leaves it elsewhere.
Row any_zero_row(DType compute);

}  // namespace refnpu
