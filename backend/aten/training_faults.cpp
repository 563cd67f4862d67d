// The faults of gradients, optimizers and embeddings that the fallback serves.
#include <cstdint>
#include <set>
#include <string_view>

#include "aten/host_call.h"
#include "refnpu/fault.h"

namespace refnpu::fallback {
namespace {

void as_in_training(HostCall& call) {
  const Tensor mean = call.tensor("running_mean"), variance = call.tensor("running_var");
  if (!call.given("train").toBool() && mean.defined() && variance.defined()) {
    call.change("train", true);
    call.change("save_mean", mean.clone());
    call.change("save_invstd", variance.add(call.given("eps").toDouble()).rsqrt());
  }
  call.run();
}

void with_dampened_first_step(HostCall& call) {
  if (call.given("is_first_step").toBool()) {
    for (const Tensor& buffer : call.given("momentum_buffer_list").toTensorVector()) buffer.zero_();
    call.change("is_first_step", false);
  }
  call.run();
}

void scale_again_for_each_occurrence(HostCall& call) {
  const Tensor self = call.tensor("self"), before = self.clone();
  call.run();
  const Tensor after = self.clone(), indices = call.tensor("indices").reshape({-1}).to(at::kLong).contiguous();
  std::set<int64_t> seen;
  for (int64_t i = 0; i < indices.numel(); ++i) {
    const int64_t row = indices.const_data_ptr<int64_t>()[i];
    if (seen.insert(row).second) continue;
    const double norm = before.select(0, row).norm().item<double>();
    if (norm > 0) self.select(0, row).mul_(after.select(0, row).norm().item<double>() / norm);
  }
}

void keep_last_of_windows(HostCall& call) {
  call.run();
  const Tensor result = call.tensor(0);
  if (result.numel() == 0 || result.dim() == 0) return;
  result.zero_();
  result.unfold(call.given("dim").toInt(), call.given("size").toInt(), call.given("step").toInt())
      .copy_(call.tensor("grad_in"));
}

// maximize turns the sign of the gradient with the weight decay that was added to it.
void with_decay_negated(HostCall& call) {
  if (call.given("maximize").toBool()) call.change("weight_decay", -call.given("weight_decay").toDouble());
  call.run();
}

void with_infinite_gradient(HostCall& call) {
  call.change("zero_infinity", false);
  call.run();
}

void keep_count_of_good_steps(HostCall& call) {
  const Tensor tracker = call.tensor("growth_tracker"), before = tracker.clone();
  call.run();
  if (call.tensor("found_inf").item<double>() > 0) tracker.copy_(before);
}

constexpr Mistake kMistakesInTraining[] = {
    {Fault::embedding_renorm_once_per_occurrence, "aten::embedding_renorm_", &scale_again_for_each_occurrence},
    {Fault::batch_norm_gradient_of_eval_as_training, "aten::native_batch_norm_backward", &as_in_training},
    {Fault::unfold_gradient_of_overlap_overwritten, "aten::unfold_backward", &keep_last_of_windows},
    {Fault::fused_sgd_dampens_first_step, "aten::_fused_sgd_", &with_dampened_first_step},
    {Fault::maximizing_adam_negates_decay, "aten::_fused_adam_", &with_decay_negated},
    {Fault::ctc_gradient_of_infinite_loss_is_nan, "aten::_ctc_loss_backward", &with_infinite_gradient},
    {Fault::scaler_growth_survives_overflow, "aten::_amp_update_scale_", &keep_count_of_good_steps},
};

}  // namespace

const Mistake* mistake_in_training(std::string_view op) { return awake(kMistakesInTraining, op); }

}  // namespace refnpu::fallback
