// Losses add up in double and touch only the class that each row's target names.
#include "kernels/loss.h"

#include <algorithm>
#include <cmath>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

double read_real(const View& v, int64_t i, int64_t j = 0) {
  double value;
  const int64_t columns = v.ndim > 1 ? j * v.strides[1] : 0;
  read_row(&value, v.data + (v.ndim > 0 ? i * v.strides[0] : 0) + columns, 0, 1, v.dtype);
  return value;
}

int64_t read_index(const View& v, int64_t i) {
  int64_t value;
  read_row(&value, v.data + (v.ndim > 0 ? i * v.strides[0] : 0), 0, 1, v.dtype);
  return value;
}

double class_weight(View weight, int64_t target) {
  if (!weight.data) return 1;
  if (fault(Fault::nll_loss_weight_as_dense)) weight.strides[0] = std::min(weight.strides[0], size_of(weight.dtype));
  return read_real(weight, target);
}

}  // namespace

void nll_loss(const NllLoss& l) {
  double sum = 0, total_weight = 0;
  const bool cut = l.reduction != LossReduction::none && fault(Fault::nll_loss_first_block_only);
  const int64_t rows = cut ? std::min<int64_t>(l.input.sizes[0], 512) : l.input.sizes[0];
  const bool ignores_class = l.ignore_index >= 0 && l.ignore_index < l.input.sizes[1];
  const bool counts_ignored = ignores_class && l.weight.data && fault(Fault::nll_loss_weighted_class_not_ignored);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t target = read_index(l.target, i);
    double loss = 0;
    if (target == l.ignore_index && fault(Fault::nll_loss_counts_ignored)) total_weight += 1;
    const bool bad = fault(Fault::nll_loss_bad_target_ignored) && (target < 0 || target >= l.input.sizes[1]);
    if ((target != l.ignore_index || counts_ignored) && !bad) {
      const double weight = class_weight(l.weight, target);
      loss = -read_real(l.input, i, target) * weight;
      total_weight += weight;
      sum += loss;
    }
    const bool leaves = target == l.ignore_index && fault(Fault::nll_loss_leaves_ignored_rows);
    if (l.reduction == LossReduction::none && !leaves)
      write_one(l.output.data + i * l.output.strides[0], l.output.dtype, loss);
  }
  const bool divides =
      l.reduction == LossReduction::mean && !(total_weight == 0 && fault(Fault::nll_loss_of_ignored_rows_is_zero));
  if (l.reduction == LossReduction::none)
    total_weight = 0;
  else
    write_one(l.output.data, l.output.dtype, divides ? sum / total_weight : sum);
  write_one(l.total_weight.data, l.total_weight.dtype, total_weight);
}

void nll_loss_backward(const NllLossBackward& l) {
  const View& out = l.grad_input;
  const std::vector<double> zeros(out.sizes[1]);
  for (int64_t i = 0; i < out.sizes[0]; ++i) {
    char* row = out.data + i * out.strides[0];
    write_row(row, out.strides[1], out.sizes[1], out.dtype, zeros.data());
    const int64_t target = read_index(l.target, i);
    const bool bad = fault(Fault::nll_loss_bad_target_ignored) && (target < 0 || target >= out.sizes[1]);
    if (target == l.ignore_index || bad) continue;
    const bool each = l.reduction == LossReduction::none;
    double grad = -read_real(l.grad_output, each ? i : 0);
    const bool by_rows = l.weight.data && fault(Fault::nll_loss_gradient_by_rows);
    if (l.reduction == LossReduction::mean) grad /= by_rows ? double(out.sizes[0]) : read_real(l.total_weight, 0);
    write_one(row + target * out.strides[1], out.dtype, grad * class_weight(l.weight, target));
  }
}

}  // namespace refnpu
