// The negative log-likelihood loss and its gradient.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

enum class LossReduction { none = 0, mean = 1, sum = 2 };

// input [rows, classes], target [rows] (uint8 or int64), weight [classes] or absent, output [rows] or one element,
// total_weight one element. The host has checked the targets.
struct NllLoss {
  View input, target, weight, output, total_weight;
  int64_t ignore_index = -100;
  LossReduction reduction = LossReduction::mean;
};
void nll_loss(const NllLoss& loss);

struct NllLossBackward {
  View grad_output, target, weight, total_weight, grad_input;  // grad_input [rows, classes]
  int64_t ignore_index = -100;
  LossReduction reduction = LossReduction::mean;
};
void nll_loss_backward(const NllLossBackward& loss);

}  // namespace refnpu
