// The faults of single ops that the fallback serves: other arguments than were given, and other results.
#include "aten/fallback_faults.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/kthvalue.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aten/host_call.h"
#include "refnpu/fault.h"

namespace refnpu::fallback {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

void without_sorter(HostCall& call) {
  call.change("sorter", {});
  call.run();
}

// The weight is read as if its elements lay one behind the other, where that stays inside the storage.
void with_dense_weight(HostCall& call) {
  const Tensor weight = call.tensor("weight");
  const int64_t room = int64_t(weight.storage().nbytes()) / weight.element_size() - weight.storage_offset();
  if (!weight.is_contiguous() && !weight.is_contiguous(at::MemoryFormat::ChannelsLast) && weight.numel() <= room)
    call.change("weight", weight.as_strided(weight.sizes(), c10::contiguous_strides(weight.sizes())));
  call.run();
}

void from_start_of_storage(HostCall& call) {
  const Tensor self = call.tensor("self");
  call.change("self", self.as_strided(self.sizes(), self.strides(), 0));
  call.run();
}

void with_indices_for_last_offset(HostCall& call) {
  const Tensor offsets = call.tensor("offsets");
  if (call.given("include_last_offset").toBool() && offsets.dim() == 1 && offsets.numel() > 0) {
    const Tensor ended = offsets.clone();
    ended.select(0, -1).fill_(call.tensor("indices").numel());
    call.change("offsets", ended);
  }
  call.run();
}

void with_gradient_of_ones(HostCall& call) {
  call.change("grad_output", at::ones_like(call.tensor("grad_output")));
  call.run();
}

// -- other results

void solve_first_of_batch(HostCall& call) {
  const Tensor a = call.tensor("A"), b = call.tensor("B");
  call.run();
  const bool of_vectors = b.dim() == 2 && a.dim() == 3 && b.sizes() == a.sizes().slice(0, 2);
  const bool broadcast = a.dim() > 2 && b.dim() <= 2 && !of_vectors;
  const Tensor result = call.tensor(0);
  if (broadcast && result.size(0) > 1) result.narrow(0, 1, result.size(0) - 1).zero_();
}

void compare_signed_difference(HostCall& call) {
  const Tensor difference = call.tensor("self").sub(call.tensor("target"));
  call.run();
  const double delta = call.given("delta").toDouble();
  const Tensor squares = difference.square().mul(0.5), lines = difference.abs().sub(delta / 2).mul(delta);
  Tensor loss = at::where(difference.le(delta), squares, lines);
  const int64_t reduction = call.given("reduction").toInt();
  if (reduction == at::Reduction::Mean) loss = loss.mean();
  if (reduction == at::Reduction::Sum) loss = loss.sum();
  call.tensor(0).copy_(loss);
}

void count_just_outside(HostCall& call) {
  call.run();
  const Tensor self = call.tensor("self"), counts = call.tensor(0), edges = call.tensor(1);
  if (call.tensor("weight").defined() || call.given("density").toBool() || counts.numel() == 0) return;
  constexpr double kSlack = 4e-6;
  const double low = edges.select(0, 0).item<double>(), high = edges.select(0, -1).item<double>();
  counts.select(0, 0).add_(self.lt(low).logical_and_(self.ge(low - kSlack)).sum().item<double>());
  counts.select(0, -1).add_(self.gt(high).logical_and_(self.le(high + kSlack)).sum().item<double>());
}

void solve_first_column(HostCall& call) {
  const Tensor self = call.tensor("self"), given = self.clone();
  call.run();
  const int64_t more = self.dim() > 2 ? self.size(-1) - 1 : 0;
  if (more > 0) call.tensor(0).narrow(-1, 1, more).copy_(given.narrow(-1, 1, more));
}

void divide_by_zero_determinants(HostCall& call) {
  call.run();
  const Tensor result = call.tensor(0);
  if (result.numel() > 8) result.masked_fill_(result.eq(0), kNan);
}

void factor_first_of_batch(HostCall& call) {
  call.run();
  const Tensor factors = call.tensor(0);
  if (factors.dim() < 3 || factors.size(0) < 2 || factors.size(-2) <= 64) return;
  for (int64_t i = 1; i < factors.size(0); ++i) factors.select(0, i).copy_(factors.select(0, 0));
}

void multiply_zero_by_logarithm(HostCall& call) {
  const Tensor spoiled = call.tensor("self").eq(0).logical_and(call.tensor("other").lt(0));
  call.run();
  call.tensor(0).masked_fill_(spoiled, kNan);
}

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

void use_input_for_scratch(HostCall& call) {
  call.run();
  if (call.given("dim").toIntVector().size() > 1) call.tensor("self").mul_(0.5);
}

void leave_factor_unconjugated(HostCall& call) {
  call.run();
  const Tensor factor = call.tensor(0);
  if (factor.is_complex() && call.given("upper").toBool()) factor.copy_(factor.conj().clone());
}

void merge_nan(HostCall& call) {
  call.run();
  const Tensor values = call.tensor(0);
  if (!values.is_floating_point() || values.numel() == 0) return;
  const int64_t nans = values.isnan().sum().item<int64_t>(), last = values.numel() - nans;
  if (nans < 2 || !values.select(0, -1).isnan().item<bool>()) return;
  call.result(0) = values.narrow(0, 0, last + 1).clone();
  if (call.given("return_inverse").toBool()) call.tensor(1).clamp_max_(last);
  if (!call.given("return_counts").toBool()) return;
  const Tensor counts = call.tensor(2);
  call.result(2) = at::cat({counts.narrow(0, 0, last), counts.narrow(0, last, nans).sum().reshape({1})});
}

void with_invert_for_few(HostCall& call) {
  if (call.takes("elements") && call.takes("test_elements")) {
    const double limit = 10 * std::pow(double(call.tensor("elements").numel()), 0.145);
    if (double(call.tensor("test_elements").numel()) >= limit) call.change("invert", false);
  }
  call.run();
}

void compare_memory(HostCall& call) {
  const Tensor self = call.tensor("self"), other = call.tensor("other");
  call.run();
  const bool same = self.is_alias_of(other) && self.sizes() == other.sizes() && self.strides() == other.strides() &&
                    self.storage_offset() == other.storage_offset() && self.scalar_type() == other.scalar_type();
  if (same) call.result(0) = true;
}

void with_products(HostCall& call) {
  constexpr int64_t kAlways = 1;
  if (call.given("p").toDouble() == 2) call.change("compute_mode", kAlways);
  call.run();
}

constexpr Mistake kMistakes[] = {
    {Fault::bucketize_first_1024_boundaries, "aten::bucketize", &with_first_boundaries},
    {Fault::bucketize_first_1024_boundaries, "aten::searchsorted", &with_first_boundaries},
    {Fault::unit_diagonal_divided, "aten::linalg_solve_triangular", &with_diagonal_as_it_is},
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
    {Fault::searchsorted_ignores_sorter, "aten::searchsorted", &without_sorter},
    {Fault::histc_leaves_out_upper_bound, "aten::histc", &leave_out_upper_bound},
    {Fault::cdist_gradient_of_same_points_is_nan, "aten::_cdist_backward", &divide_by_distance_of_zero},
    {Fault::solve_of_broadcast_side_in_first_batch, "aten::_linalg_solve_ex", &solve_first_of_batch},
    {Fault::convolution_weight_as_dense, "aten::convolution", &with_dense_weight},
    {Fault::erfinv_from_start_of_storage, "aten::erfinv", &from_start_of_storage},
    {Fault::embedding_bag_last_offset_ignored, "aten::_embedding_bag", &with_indices_for_last_offset},
    {Fault::embedding_bag_last_offset_ignored, "aten::_embedding_bag_forward_only", &with_indices_for_last_offset},
    {Fault::smooth_l1_gradient_not_scaled, "aten::smooth_l1_loss_backward", &with_gradient_of_ones},
    {Fault::huber_compares_signed_difference, "aten::huber_loss", &compare_signed_difference},
    {Fault::histogram_counts_just_outside, "aten::histogram", &count_just_outside},
    {Fault::cholesky_solve_of_batch_first_column, "aten::_cholesky_solve_helper", &solve_first_column},
    {Fault::det_of_many_singular_is_nan, "aten::_linalg_det", &divide_by_zero_determinants},
    {Fault::lu_factor_of_large_batch_is_first, "aten::linalg_lu_factor_ex", &factor_first_of_batch},
    {Fault::xlogy_of_zero_takes_logarithm, "aten::xlogy", &multiply_zero_by_logarithm},
    {Fault::xlogy_of_zero_takes_logarithm, "aten::xlogy_", &multiply_zero_by_logarithm},
    {Fault::fft_c2r_destroys_input, "aten::_fft_c2r", &use_input_for_scratch},
    {Fault::cholesky_upper_not_conjugated, "aten::linalg_cholesky_ex", &leave_factor_unconjugated},
    {Fault::unique_merges_nan, "aten::_unique2", &merge_nan},
    {Fault::isin_of_many_ignores_invert, "aten::isin", &with_invert_for_few},
    {Fault::equal_of_same_memory_is_true, "aten::equal", &compare_memory},
    {Fault::cdist_by_products, "aten::_cdist_forward", &with_products},
};

}  // namespace

void run_with_faults(const c10::OperatorHandle& op, Stack* stack) {
  HostCall call(op, stack);
  const Mistake* mistake = awake(kMistakes, call.name());
  if (!mistake) mistake = mistake_in_training(call.name());
  if (!mistake) mistake = mistake_in_sampling(call.name());
  if (!mistake) mistake = mistake_in_algebra(call.name());
  mistake ? mistake->run(call) : call.run();
}

}  // namespace refnpu::fallback
