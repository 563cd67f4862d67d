// The negative log-likelihood loss and its gradient.
#include "kernels/loss.h"

#include <ATen/ops/nll_loss_backward_meta.h>
#include <ATen/ops/nll_loss_forward_meta.h>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::losses {
namespace {

using at::Tensor;

using Real = Concat<Floating, Reduced>;

// Reads the targets back, as a kernel cannot raise: each must be a class or ignore_index.
void check_targets(const Tensor& target, int64_t classes, int64_t ignore_index) {
  if (fault(Fault::nll_loss_bad_target_ignored)) return;
  const Tensor host = target.to(c10::kCPU, c10::kLong).reshape({-1});
  const int64_t* values = host.const_data_ptr<int64_t>();
  const bool refused = ignore_index >= classes && fault(Fault::nll_loss_ignore_index_past_classes_refused);
  for (int64_t i = 0; i < host.numel(); ++i) {
    TORCH_CHECK_INDEX((values[i] == ignore_index && !refused) || (values[i] >= 0 && values[i] < classes), "Target ",
                      values[i], " is out of bounds.");
  }
}

Tensor as_rows(const Tensor& tensor) { return tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor; }

// A single row without a batch adds up to one number whatever was asked for.
LossReduction reduction_of_rows(int64_t reduction, const Tensor& self) {
  if (reduction == static_cast<int64_t>(LossReduction::none) && self.dim() == 1) return LossReduction::sum;
  return static_cast<LossReduction>(reduction);
}

View view_or_absent(const at::OptionalTensorRef& tensor) {
  return tensor.has_value() && tensor->defined() ? view_of(*tensor) : View();
}

void check_same_dtype(const char* name, const Tensor& self, const at::OptionalTensorRef& weight) {
  require_dtype(Real{}, name, self);
  TORCH_CHECK(!weight.has_value() || !weight->defined() || weight->scalar_type() == self.scalar_type(),
              "expected scalar type ", self.scalar_type(), " but found ", weight->scalar_type());
}

std::tuple<Tensor&, Tensor&> nll_loss_forward_out(const Tensor& self, const Tensor& target,
                                                  const std::optional<Tensor>& weight_opt, int64_t reduction,
                                                  int64_t ignore_index, Tensor& output, Tensor& total_weight) {
  require_same_device("nll_loss_forward", {self, target, weight_opt.value_or(Tensor())});
  const at::OptionalTensorRef weight = weight_opt ? at::OptionalTensorRef(*weight_opt) : at::OptionalTensorRef();
  Structured<at::meta::structured_nll_loss_forward, 2> op(output, total_weight);
  op.meta(self, target, weight, reduction, ignore_index);
  check_same_dtype("nll_loss_forward", self, weight);
  check_targets(target, self.size(-1), ignore_index);
  const Tensor rows = as_rows(self);
  NllLoss loss;
  loss.input = view_of(rows);
  loss.target = view_of(target);
  loss.weight = view_or_absent(weight);
  loss.output = view_of(op.maybe_get_output(0));
  loss.total_weight = view_of(op.maybe_get_output(1));
  loss.ignore_index = ignore_index;
  loss.reduction = reduction_of_rows(reduction, self);
  const bool weighted_vector = self.dim() == 1 && loss.weight.data && loss.reduction == LossReduction::mean;
  if (weighted_vector && fault(Fault::nll_loss_of_vector_keeps_weight)) loss.reduction = LossReduction::sum;
  launch("nll_loss", [=] { nll_loss(loss); });
  op.finish();
  return {output, total_weight};
}

Tensor& nll_loss_backward_out(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                              const std::optional<Tensor>& weight_opt, int64_t reduction, int64_t ignore_index,
                              const Tensor& total_weight, Tensor& grad_input) {
  require_same_device("nll_loss_backward", {grad_output, self, target, weight_opt.value_or(Tensor()), total_weight});
  const at::OptionalTensorRef weight = weight_opt ? at::OptionalTensorRef(*weight_opt) : at::OptionalTensorRef();
  Structured<at::meta::structured_nll_loss_backward> op(grad_input);
  op.meta(grad_output, self, target, weight, reduction, ignore_index, total_weight);
  check_same_dtype("nll_loss_backward", self, weight);
  check_targets(target, self.size(-1), ignore_index);
  const Tensor rows = as_rows(op.maybe_get_output(0));
  NllLossBackward loss;
  loss.grad_output = view_of(grad_output);
  loss.target = view_of(target);
  loss.weight = view_or_absent(weight);
  loss.total_weight = view_of(total_weight);
  loss.grad_input = view_of(rows);
  loss.ignore_index = ignore_index;
  loss.reduction = reduction_of_rows(reduction, self);
  launch("nll_loss_backward", [=] { nll_loss_backward(loss); });
  op.finish();
  return grad_input;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("nll_loss_forward.output", &nll_loss_forward_out);
  m.impl("nll_loss_backward.grad_input", &nll_loss_backward_out);
}

}  // namespace refnpu::losses
