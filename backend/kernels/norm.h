// Layer normalisation over rows, and its gradients.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

// A contiguous operand; absent without data.
struct Flat {
  char* data = nullptr;
  DType dtype = DType::f32;
};

// All operands are contiguous: input and output [rows, width], weight and bias [width], mean and rstd [rows].
struct LayerNorm {
  int64_t rows = 0, width = 0;
  double eps = 0;
  Flat input, weight, bias, output, mean, rstd;
};
void layer_norm(const LayerNorm& n);

// The gradients that are asked for have data.
struct LayerNormBackward {
  int64_t rows = 0, width = 0;
  Flat grad, input, mean, rstd, weight, grad_input, grad_weight, grad_bias;
};
void layer_norm_backward(const LayerNormBackward& n);

}  // namespace refnpu
