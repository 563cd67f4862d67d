// Layer normalisation and its gradients.
#include "kernels/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::norms {
namespace {

using at::IntArrayRef;
using at::Tensor;

Flat flat_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {static_cast<char*>(const_cast<void*>(tensor.const_data_ptr())), to_dtype(tensor.scalar_type())};
}

Tensor contiguous_or_undefined(const std::optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : Tensor();
}

void check_parameter(const char* name, const Tensor& parameter, IntArrayRef shape) {
  TORCH_CHECK(!parameter.defined() || parameter.sizes().equals(shape), "Expected ", name, " to be of same shape as ",
              "normalized_shape, but got ", name, " of shape ", parameter.sizes(), " and normalized_shape = ", shape);
}

// Rows and their width: the input's last dimensions must be normalized_shape.
std::pair<int64_t, int64_t> rows_and_width(const Tensor& input, IntArrayRef shape) {
  TORCH_CHECK(!shape.empty(),
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
              "element, but got normalized_shape = ",
              shape);
  const int64_t kept = input.dim() - static_cast<int64_t>(shape.size());
  TORCH_CHECK(kept >= 0 && input.sizes().slice(kept).equals(shape), "Given normalized_shape=", shape,
              ", expected input with shape [*", shape, "], but got input of size", input.sizes());
  return {c10::multiply_integers(input.sizes().slice(0, kept)), c10::multiply_integers(shape)};
}

// Parameters have the input's dtype, or are float beside a half or bfloat16 input: statistics then are float too.
at::ScalarType statistics_type(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const Tensor& parameter = weight.defined() ? weight : bias;
  if (!parameter.defined() || parameter.scalar_type() == input.scalar_type()) return input.scalar_type();
  const bool reduced = input.scalar_type() == c10::kHalf || input.scalar_type() == c10::kBFloat16;
  TORCH_CHECK(reduced && parameter.scalar_type() == c10::kFloat,
              "layer_norm: expected weight and bias of the input's dtype, ", input.scalar_type(),
              ", or float beside a half or bfloat16 input, but got ", parameter.scalar_type());
  return c10::kFloat;
}

bool is_expanded(const Tensor& tensor) {
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.stride(d) == 0 && tensor.size(d) > 1) return true;
  }
  return false;
}

// The fault of a kernel that is kept with the eps of its first call.
double kept_eps(double eps) {
  static const double first = eps;
  return first;
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& input, c10::SymIntArrayRef symbolic_shape,
                                              const std::optional<Tensor>& weight_opt,
                                              const std::optional<Tensor>& bias_opt, double eps) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(symbolic_shape);
  const Tensor weight = contiguous_or_undefined(weight_opt), bias = contiguous_or_undefined(bias_opt);
  require_same_device("native_layer_norm", {input, weight, bias});
  const auto [rows, width] = rows_and_width(input, shape);
  check_parameter("weight", weight, shape);
  const bool counted = bias.defined() && fault(Fault::layer_norm_bias_shape_by_numel);
  if (!counted || bias.numel() != c10::multiply_integers(shape)) check_parameter("bias", bias, shape);
  const bool unbiased = !weight.defined() && fault(Fault::layer_norm_bias_needs_weight);
  const bool alike = fault(Fault::layer_norm_mixed_statistics_dtype);
  const auto statistics = alike ? input.scalar_type() : statistics_type(input, weight, bias);
  const bool taken = input.is_non_overlapping_and_dense() && fault(Fault::layer_norm_takes_dense_for_contiguous);
  const Tensor from = taken ? input : input.contiguous();
  Tensor out = at::empty(input.sizes(), input.options());
  c10::SmallVector<int64_t, 8> kept(input.sizes().begin(), input.sizes().end());
  for (size_t d = kept.size() - shape.size(); d < kept.size(); ++d) kept[d] = 1;
  Tensor mean = at::empty(kept, input.options().dtype(statistics)), rstd = at::empty_like(mean);
  if (rows > 0) {
    require_dtype(Concat<Floating, Reduced>{}, "native_layer_norm", input);
    const LayerNorm n{rows,          width,           fault(Fault::layer_norm_eps_of_first_call) ? kept_eps(eps) : eps,
                      flat_of(from), flat_of(weight), flat_of(unbiased ? Tensor() : bias),
                      flat_of(out),  flat_of(mean),   flat_of(rstd)};
    launch("layer_norm", [=] { ::refnpu::layer_norm(n); });
    if (input.requires_grad() && fault(Fault::layer_norm_saves_deviation)) rstd.reciprocal_();
    if (shape.size() > 1 && fault(Fault::layer_norm_over_last_dim_alone)) {
      const c10::SymInt last[] = {shape.back()};
      out.copy_(std::get<0>(layer_norm(input, last, {}, {}, eps)));
      if (weight.defined()) out.mul_(weight);
      if (bias.defined()) out.add_(bias);
    }
  }
  return {out, mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input,
                                                       c10::SymIntArrayRef symbolic_shape, const Tensor& mean,
                                                       const Tensor& rstd, const std::optional<Tensor>& weight_opt,
                                                       const std::optional<Tensor>& bias_opt,
                                                       std::array<bool, 3> mask) {
  const auto shape = C10_AS_INTARRAYREF_SLOW(symbolic_shape);
  const Tensor weight = contiguous_or_undefined(weight_opt), bias = contiguous_or_undefined(bias_opt);
  require_same_device("native_layer_norm_backward", {grad, input, mean, rstd, weight, bias});
  const auto [rows, width] = rows_and_width(input, shape);
  check_parameter("weight", weight, shape);
  check_parameter("bias", bias, shape);
  const bool misread = is_expanded(grad) && fault(Fault::layer_norm_backward_of_expanded_gradient);
  const Tensor held[] = {misread ? misread_as_dense(grad) : grad.contiguous(), input.contiguous(), mean.contiguous(),
                         rstd.contiguous()};
  const Tensor& like_weight = weight.defined() ? weight : input;
  Tensor grad_input, grad_weight, grad_bias;
  if (mask[0]) grad_input = at::empty(input.sizes(), input.options());
  const bool cleared = !fault(Fault::layer_norm_gradient_not_cleared);
  if (mask[1])
    grad_weight = cleared ? at::zeros(shape, like_weight.options()) : at::empty(shape, like_weight.options());
  if (mask[2]) grad_bias = at::zeros(shape, (bias.defined() ? bias : like_weight).options());
  if (rows > 0) {
    require_dtype(Concat<Floating, Reduced>{}, "native_layer_norm_backward", input);
    const LayerNormBackward n{rows,
                              width,
                              flat_of(held[0]),
                              flat_of(held[1]),
                              flat_of(held[2]),
                              flat_of(held[3]),
                              flat_of(weight),
                              flat_of(grad_input),
                              flat_of(grad_weight),
                              flat_of(grad_bias)};
    launch("layer_norm_backward", [=] { ::refnpu::layer_norm_backward(n); });
    if (!mask[0] && fault(Fault::layer_norm_parameter_gradients_need_input)) {
      if (mask[1]) grad_weight.zero_();
      if (mask[2]) grad_bias.zero_();
    }
    if (mask[2] && !mask[1] && fault(Fault::layer_norm_bias_gradient_needs_weights)) grad_bias.zero_();
  }
  return {grad_input, grad_weight, grad_bias};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("native_layer_norm", &layer_norm);
  m.impl("native_layer_norm_backward", &layer_norm_backward);
}

}  // namespace refnpu::norms
