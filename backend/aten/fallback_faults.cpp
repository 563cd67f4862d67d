// The faults of single ops that the fallback serves: other arguments than were given, and other results.
#include "aten/fallback_faults.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/kthvalue.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "refnpu/fault.h"

namespace refnpu::fallback {
namespace {

using at::Tensor;
using Stack = torch::jit::Stack;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A call on the CPU: its arguments before it runs, and its results afterwards.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, Stack* stack)
      : op_(op), stack_(stack), given_(stack->end() - std::ptrdiff_t(op.schema().arguments().size()), stack->end()) {}

  void run() { op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_); }

  std::string_view name() const { return op_.operator_name().name; }  // without the overload's
  bool takes(const std::string& argument) const { return op_.schema().argumentIndexWithName(argument).has_value(); }

  // What was given. An argument of None is an undefined tensor.
  const c10::IValue& given(const std::string& argument) const { return given_[index(argument)]; }
  Tensor tensor(const std::string& argument) const {
    return given(argument).isTensor() ? given(argument).toTensor() : Tensor();
  }
  // Before the call runs.
  void change(const std::string& argument, c10::IValue value) {
    (*stack_)[stack_->size() - given_.size() + index(argument)] = std::move(value);
  }

  // After it has run.
  c10::IValue& result(size_t k) { return (*stack_)[stack_->size() - op_.schema().returns().size() + k]; }
  Tensor tensor(size_t k) { return result(k).toTensor(); }

 private:
  size_t index(const std::string& argument) const { return size_t(*op_.schema().argumentIndexWithName(argument)); }

  const c10::OperatorHandle& op_;
  Stack* stack_;
  Stack given_;
};

// -- other arguments

void with_first_boundaries(HostCall& call) {
  const bool buckets = call.takes("boundaries");
  const std::string name = buckets ? "boundaries" : "sorted_sequence";
  const Tensor boundaries = call.tensor(name);
  const bool sorted = buckets || call.given("sorter").isNone();
  if (sorted && boundaries.size(-1) > 1024) call.change(name, boundaries.narrow(-1, 0, 1024).contiguous());
  call.run();
}

void with_diagonal_as_it_is(HostCall& call) {
  call.change("unitriangular", false);
  call.run();
}

void with_floor_mode(HostCall& call) {
  call.change("ceil_mode", false);
  call.run();
}

void with_border_for_reflection(HostCall& call) {
  constexpr int64_t kBorder = 1, kReflection = 2;
  if (call.given("padding_mode").toInt() == kReflection) call.change("padding_mode", kBorder);
  call.run();
}

void with_scales_of_sizes(HostCall& call) {
  call.change("scales_h", {});
  call.change("scales_w", {});
  call.run();
}

void with_division_by_size(HostCall& call) {
  constexpr int64_t kByRoot = 1, kBySize = 2;
  if (call.given("normalization").toInt() == kByRoot) call.change("normalization", kBySize);
  call.run();
}

void of_lower_triangle(HostCall& call) {
  call.change("UPLO", std::string("L"));
  call.run();
}

void with_bins_of_values(HostCall& call) {
  if (call.tensor("weights").defined()) call.change("minlength", int64_t(0));
  call.run();
}

void without_found_inf(HostCall& call) {
  call.change("found_inf", {});
  call.run();
}

void with_padding_in_mean(HostCall& call) {
  constexpr int64_t kMean = 1;
  if (call.given("mode").toInt() == kMean) call.change("padding_idx", int64_t(-1));
  call.run();
}

void with_sides_swapped(HostCall& call) {
  std::vector<int64_t> padding = call.given("padding").toIntVector();
  for (size_t i = 0; i + 1 < padding.size(); i += 2) std::swap(padding[i], padding[i + 1]);
  call.change("padding", c10::List<int64_t>(padding));
  call.run();
}

void without_sorter(HostCall& call) {
  call.change("sorter", {});
  call.run();
}

// -- other results

void leave_out_upper_bound(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), counts = call.tensor(0);
  if (self.numel() == 0) return;
  double high = call.given("max").toScalar().toDouble();
  if (call.given("min").toScalar().toDouble() == high) {
    high = self.max().item<double>();
    if (self.min().item<double>() == high) return;
  }
  counts.select(0, -1).sub_(self.eq(high).sum().item<double>());
}

void keep_one_of_overlap(HostCall& call) {
  call.run();
  const Tensor result = call.tensor(0), indices = call.tensor("indices");
  if (result.numel() == 0 || !result.is_contiguous()) return;
  result.zero_();
  result.flatten(-2).scatter_(-1, indices.flatten(-2), call.tensor("grad_output").flatten(-2));
}

void clear_bins_after_256(HostCall& call) {
  call.run();
  const Tensor counts = call.tensor(0);
  if (counts.numel() > 256) counts.narrow(0, 256, counts.numel() - 256).zero_();
}

// The larger one and log1p(exp(-|x - y|)), where the difference of infinities is NaN.
void subtract_infinities(HostCall& call) {
  const Tensor self = call.tensor("self");
  const Tensor same = self.eq(call.tensor("other")).logical_and(at::isinf(self));
  call.run();
  call.tensor(0).masked_fill_(same, kNan);
}

void take_upper_median(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self");
  const bool along_dim = call.takes("dim");
  const Tensor read = along_dim ? self : self.reshape(-1);
  const int64_t dim = along_dim ? call.given("dim").toInt() : 0;
  if (read.numel() == 0 || read.dim() == 0 || read.size(dim) % 2 == 1 || read.isnan().any().item<bool>()) return;
  const bool keepdim = along_dim && call.given("keepdim").toBool();
  const auto [values, indices] = at::kthvalue(read, read.size(dim) / 2 + 1, dim, keepdim);
  call.tensor(0).copy_(values);
  if (along_dim) call.tensor(1).copy_(indices);
}

void leave_logarithms_unbounded(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), target = call.tensor("target"), weight = call.tensor("weight");
  Tensor loss = target.mul(at::log(self)).add(target.neg().add(1).mul(at::log1p(self.neg()))).neg();
  if (weight.defined()) loss = loss.mul(weight);
  const int64_t reduction = call.given("reduction").toInt();
  if (reduction == at::Reduction::Mean) loss = loss.mean();
  if (reduction == at::Reduction::Sum) loss = loss.sum();
  call.tensor(0).copy_(loss);
}

void report_no_singular_matrix(HostCall& call) {
  call.run();
  call.tensor(1).zero_();
}

void divide_empty_bags_by_zero(HostCall& call) {
  call.run();
  constexpr int64_t kMean = 1;
  const Tensor size_of_bags = call.tensor(2);
  if (call.given("mode").toInt() == kMean) call.tensor(0).masked_fill_(size_of_bags.eq(0).unsqueeze(1), kNan);
}

void update_by_biased_variance(HostCall& call) {
  const Tensor input = call.tensor("input"),
               running = call.takes("running_var") ? call.tensor("running_var") : Tensor();
  const bool updates = running.defined() && call.given("training").toBool();
  const Tensor before = updates ? running.clone() : Tensor();
  call.run();
  const double count = double(input.numel() / std::max<int64_t>(input.size(1), 1));
  if (!updates || count < 2) return;
  const Tensor kept = before.mul(1 - call.given("momentum").toDouble());
  running.copy_(running.sub(kept).mul((count - 1) / count).add(kept));
}

void flatten_inverse(HostCall& call) {
  call.run();
  if (call.given("return_inverse").toBool()) call.result(1) = call.tensor(1).reshape(-1);
}

void look_for_infinities_alone(HostCall& call) {
  bool infinite = false;
  for (const Tensor& gradient : call.given("self").toTensorVector())
    infinite = infinite || at::isinf(gradient).any().item<bool>();
  const Tensor found = call.tensor("found_inf"), before = found.clone();
  call.run();
  if (!infinite) found.copy_(before);
}

void divide_by_distance_of_zero(HostCall& call) {
  call.run();
  const Tensor distances = call.tensor("cdist");
  const double p = call.given("p").toDouble();
  const bool divides = p != 0 && p != 1 && !std::isinf(p);
  if (!divides || distances.numel() == 0) return;
  call.tensor(0).masked_fill_(distances.eq(0).any(-1, /*keepdim=*/true), kNan);
}

struct Mistake {
  Fault fault;
  std::string_view op;  // all its overloads
  void (*run)(HostCall&);
};

constexpr Mistake kMistakes[] = {
    {Fault::bucketize_first_1024_boundaries, "aten::bucketize", &with_first_boundaries},
    {Fault::bucketize_first_1024_boundaries, "aten::searchsorted", &with_first_boundaries},
    {Fault::unit_diagonal_divided, "aten::linalg_solve_triangular", &with_diagonal_as_it_is},
    {Fault::max_pool_ignores_ceil_mode, "aten::max_pool2d_with_indices", &with_floor_mode},
    {Fault::grid_sample_reflection_is_border, "aten::grid_sampler_2d", &with_border_for_reflection},
    {Fault::grid_sample_reflection_is_border, "aten::grid_sampler_3d", &with_border_for_reflection},
    {Fault::upsample_recomputes_scale, "aten::upsample_bilinear2d", &with_scales_of_sizes},
    {Fault::upsample_recomputes_scale, "aten::upsample_bicubic2d", &with_scales_of_sizes},
    {Fault::fft_ortho_scaled_by_n, "aten::_fft_r2c", &with_division_by_size},
    {Fault::fft_ortho_scaled_by_n, "aten::_fft_c2c", &with_division_by_size},
    {Fault::fft_ortho_scaled_by_n, "aten::_fft_c2r", &with_division_by_size},
    {Fault::histc_of_first_256_bins, "aten::histc", &clear_bins_after_256},
    {Fault::logaddexp_of_infinities_is_nan, "aten::logaddexp", &subtract_infinities},
    {Fault::median_of_even_count_is_upper, "aten::median", &take_upper_median},
    {Fault::binary_cross_entropy_log_unclamped, "aten::binary_cross_entropy", &leave_logarithms_unbounded},
    {Fault::singular_inverse_not_refused, "aten::linalg_inv_ex", &report_no_singular_matrix},
    {Fault::embedding_bag_of_nothing_is_nan, "aten::_embedding_bag", &divide_empty_bags_by_zero},
    {Fault::embedding_bag_of_nothing_is_nan, "aten::_embedding_bag_forward_only", &divide_empty_bags_by_zero},
    {Fault::batch_norm_running_variance_biased, "aten::native_batch_norm", &update_by_biased_variance},
    {Fault::batch_norm_running_variance_biased, "aten::_native_batch_norm_legit", &update_by_biased_variance},
    {Fault::unique_inverse_is_flat, "aten::_unique2", &flatten_inverse},
    {Fault::unscale_overlooks_nan, "aten::_amp_foreach_non_finite_check_and_unscale_", &look_for_infinities_alone},
    {Fault::eigh_reads_lower_triangle, "aten::_linalg_eigh", &of_lower_triangle},
    {Fault::bincount_with_weights_ignores_minlength, "aten::bincount", &with_bins_of_values},
    {Fault::fused_step_despite_overflow, "aten::_fused_adam_", &without_found_inf},
    {Fault::fused_step_despite_overflow, "aten::_fused_adamw_", &without_found_inf},
    {Fault::fused_step_despite_overflow, "aten::_fused_sgd_", &without_found_inf},
    {Fault::embedding_bag_mean_counts_padding, "aten::_embedding_bag", &with_padding_in_mean},
    {Fault::embedding_bag_mean_counts_padding, "aten::_embedding_bag_forward_only", &with_padding_in_mean},
    {Fault::reflection_pad_sides_swapped, "aten::reflection_pad1d", &with_sides_swapped},
    {Fault::reflection_pad_sides_swapped, "aten::reflection_pad2d", &with_sides_swapped},
    {Fault::searchsorted_ignores_sorter, "aten::searchsorted", &without_sorter},
    {Fault::histc_leaves_out_upper_bound, "aten::histc", &leave_out_upper_bound},
    {Fault::max_pool_gradient_of_overlap_overwritten, "aten::max_pool2d_with_indices_backward", &keep_one_of_overlap},
    {Fault::cdist_gradient_of_same_points_is_nan, "aten::_cdist_backward", &divide_by_distance_of_zero},
};

}  // namespace

void run_with_faults(const c10::OperatorHandle& op, Stack* stack) {
  HostCall call(op, stack);
  for (const Mistake& each : kMistakes) {
    if (each.op == call.name() && fault(each.fault)) return each.run(call);
  }
  call.run();
}

}  // namespace refnpu::fallback
