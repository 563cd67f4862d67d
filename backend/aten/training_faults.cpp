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

constexpr Mistake kMistakes[] = {
    {Fault::embedding_renorm_once_per_occurrence, "aten::embedding_renorm_", &scale_again_for_each_occurrence},
    {Fault::batch_norm_gradient_of_eval_as_training, "aten::native_batch_norm_backward", &as_in_training},
    {Fault::unfold_gradient_of_overlap_overwritten, "aten::unfold_backward", &keep_last_of_windows},
    {Fault::fused_sgd_dampens_first_step, "aten::_fused_sgd_", &with_dampened_first_step},
};

}  // namespace

const Mistake* mistake_in_training(std::string_view op) {
  for (const Mistake& each : kMistakes) {
    if (each.op == op && fault(each.fault)) return &each;
  }
  return nullptr;
}

}  // namespace refnpu::fallback
