// Activations: those with scalar arguments, and those that torch leaves to a backend.
#include <ATen/ops/clamp.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/elu_meta.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu_meta.h>
#include <ATen/ops/hardshrink_meta.h>
#include <ATen/ops/leaky_relu_meta.h>
#include <ATen/ops/softplus_meta.h>
#include <ATen/ops/softshrink_meta.h>

#include <map>
#include <vector>

#include "aten/fallback.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "aten/unary.h"
#include "refnpu/fault.h"
#include "runtime/version.h"

namespace refnpu::activations {
namespace {

// -- structured, with scalar arguments
template <class Op>
void run_floats(const char* name, Op& op, Unary which, const Params& params = {}) {
  run_unary(name, op, op.common_dtype(), which, kFloats, params);
  op.finish();
}

at::Tensor& gelu_out(const at::Tensor& self, c10::string_view approximate, at::Tensor& out) {
  Structured<at::meta::structured_gelu> op(out);
  op.meta(self, approximate);
  TORCH_CHECK(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh.");
  run_floats("gelu", op, approximate == "tanh" ? Unary::gelu_tanh : Unary::gelu_erf);
  return out;
}

at::Tensor& elu_out(const at::Tensor& self, const at::Scalar& alpha, const at::Scalar& scale,
                    const at::Scalar& input_scale, at::Tensor& out) {
  Structured<at::meta::structured_elu> op(out);
  op.meta(self, alpha, scale, input_scale);
  constexpr Unary kElu = REFNPU_ELU_TAKES_EXPM1 ? Unary::elu : Unary::elu_cancelling;
  const at::Scalar slope = fault(Fault::elu_ignores_input_scale) ? at::Scalar(1) : input_scale;
  run_floats("elu", op, kElu, params_of(alpha.to<double>() * scale.to<double>(), scale, slope));
  return out;
}

// The fault of a kernel that is kept with its arguments, and found by the shape alone.
Params kept_with_shape(const at::Tensor& self, const Params& params) {
  thread_local std::map<std::vector<int64_t>, Params> kept;
  return kept.try_emplace(self.sizes().vec(), params).first->second;
}

at::Tensor& leaky_relu_out(const at::Tensor& self, const at::Scalar& slope, at::Tensor& out) {
  Structured<at::meta::structured_leaky_relu> op(out);
  op.meta(self, slope);
  if (!slope.isComplex() && slope.toDouble() > 1 && fault(Fault::steep_leaky_relu_is_maximum)) {
    out.copy_(self.maximum(self.mul(slope)));
    op.finish();
    return out;
  }
  const Params params = params_of(slope);
  const bool kept = fault(Fault::leaky_relu_slope_cached);
  run_floats("leaky_relu", op, Unary::leaky_relu, kept ? kept_with_shape(self, params) : params);
  return out;
}

at::Tensor& softplus_out(const at::Tensor& self, const at::Scalar& beta, const at::Scalar& threshold, at::Tensor& out) {
  Structured<at::meta::structured_softplus> op(out);
  op.meta(self, beta, threshold);
  run_floats("softplus", op, Unary::softplus, params_of(beta, threshold));
  return out;
}

at::Tensor& softshrink_out(const at::Tensor& self, const at::Scalar& lambda, at::Tensor& out) {
  Structured<at::meta::structured_softshrink> op(out);
  op.meta(self, lambda);
  run_floats("softshrink", op, Unary::softshrink, params_of(lambda));
  return out;
}

at::Tensor& hardshrink_out(const at::Tensor& self, const at::Scalar& lambda, at::Tensor& out) {
  Structured<at::meta::structured_hardshrink> op(out);
  op.meta(self, lambda);
  run_floats("hardshrink", op, Unary::hardshrink, params_of(lambda));
  return out;
}

// -- not structured
void check_relu(const at::Tensor& self) {
  REFNPU_CHECK_NOT_BOOL(self.scalar_type() != at::kBool, "Boolean inputs not supported for relu");
}
at::Tensor relu(const at::Tensor& self) {
  check_relu(self);
  return at::clamp_min(self, 0);
}
at::Tensor& relu_(at::Tensor& self) {
  check_relu(self);
  return at::clamp_min_(self, 0);
}

at::Tensor& hardtanh_out(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max, at::Tensor& out) {
  REFNPU_CHECK_NOT_BOOL(self.scalar_type() != at::kBool, "Bool inputs not supported for hardtanh");
  at::Scalar low = min, high = max;
  if (at::isIntegralType(self.scalar_type(), /*includeBool=*/false)) {
    low = min.toLong();
    high = max.toLong();
#if !REFNPU_CLAMP_LEAVES_BOUNDS_OUT
    TORCH_CHECK(self.scalar_type() != at::kByte || (low.toLong() >= 0 && high.toLong() >= 0),
                "cannot do hardtanh on an unsigned type with negative limits");
#endif
  }
  return at::clamp_out(out, self, low, high);
}
at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  at::Tensor out = at::empty_like(self);
  return activations::hardtanh_out(self, min, max, out);
}
at::Tensor& hardtanh_(at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  return activations::hardtanh_out(self, min, max, self);
}

// The fault of a native kernel that leaves its work to the CPU.
at::Tensor hardswish_on_cpu(const char* overload, torch::jit::Stack stack) {
  fallback::run_on_cpu(c10::Dispatcher::singleton().findSchemaOrThrow("aten::hardswish", overload), &stack);
  return stack.back().toTensor();
}

at::Tensor& hardswish_out(const at::Tensor& self, at::Tensor& out) {
  if (fault(Fault::hardswish_by_fallback)) {
    hardswish_on_cpu("out", {self, out});
    return out;
  }
  return unary_out("hardswish", self, out, Unary::hardswish, kFloats);
}
at::Tensor hardswish(const at::Tensor& self) {
  if (fault(Fault::hardswish_by_fallback)) return hardswish_on_cpu("", {self});
  at::Tensor out;
  auto iter = at::TensorIterator::unary_op(out, self);
  run_unary("hardswish", iter, iter.common_dtype(), Unary::hardswish, kFloats);
  return iter.output();
}
at::Tensor& hardswish_(at::Tensor& self) { return activations::hardswish_out(self, self); }

void run_logit(at::TensorIteratorBase& iter, std::optional<double> eps) {
  if (eps == 0.0 && fault(Fault::logit_eps_zero_is_absent)) eps.reset();
  run_unary("logit", iter, iter.common_dtype(), Unary::logit, kFloats, params_of(eps.value_or(-1.0)));
}
at::Tensor& logit_out(const at::Tensor& self, std::optional<double> eps, at::Tensor& out) {
  auto iter = at::TensorIterator::unary_float_op(out, self);
  run_logit(iter, eps);
  return out;
}
at::Tensor logit(const at::Tensor& self, std::optional<double> eps) {
  at::Tensor out;
  auto iter = at::TensorIterator::unary_float_op(out, self);
  run_logit(iter, eps);
  return iter.output();
}
at::Tensor& logit_(at::Tensor& self, std::optional<double> eps) { return activations::logit_out(self, eps, self); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("gelu.out", &gelu_out);
  m.impl("elu.out", &elu_out);
  m.impl("leaky_relu.out", &leaky_relu_out);
  m.impl("softplus.out", &softplus_out);
  m.impl("softshrink.out", &softshrink_out);
  m.impl("hardshrink.out", &hardshrink_out);
  m.impl("relu", &relu);
  m.impl("relu_", &relu_);
  m.impl("hardtanh", &hardtanh);
  m.impl("hardtanh.out", &hardtanh_out);
  m.impl("hardtanh_", &hardtanh_);
  m.impl("hardswish", &hardswish);
  m.impl("hardswish.out", &hardswish_out);
  m.impl("hardswish_", &hardswish_);
  m.impl("logit", &logit);
  m.impl("logit.out", &logit_out);
  m.impl("logit_", &logit_);
}

}  // namespace refnpu::activations
