// Pointwise functions of one tensor.
#pragma once

#include "kernels/elementwise.h"

namespace refnpu {

enum class Unary {
  abs,
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atanh,
  bitwise_not,
  ceil,
  conj,
  cos,
  cosh,
  erf,
  erfc,
  exp,
  exp2,
  expm1,
  floor,
  frac,
  gelu_erf,
  gelu_tanh,
  isneginf,
  isposinf,
  log,
  log10,
  log1p,
  log2,
  logical_not,
  nan_to_num,
  neg,
  neg_conj,
  reciprocal,
  round,
  round_decimals,
  rsqrt,
  sgn,
  sigmoid,
  sign,
  signbit,
  silu,
  sin,
  sinh,
  sqrt,
  square,
  cube,
  tan,
  tanh,
  trunc,
  clamp,
  clamp_min,
  clamp_max,
  elu,
  elu_cancelling,
  hardshrink,
  hardsigmoid,
  hardswish,
  leaky_relu,
  logit,
  mish,
  pow_scalar,
  softplus,
  softshrink,
};

// The row that computes `op` in `compute` (one of compute_dtype's), or nullptr when there is none. Predicates
// (isneginf, isposinf, logical_not, signbit) give bool, all others `compute`.
Row unary_row(Unary op, DType compute);

// One of them for each kind of number.
template <class T>
Row unary_real_row(Unary op);
template <class T>
Row unary_complex_row(Unary op);
template <class T>
Row unary_integer_row(Unary op);

}  // namespace refnpu
