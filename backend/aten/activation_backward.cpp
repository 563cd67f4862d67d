// threshold, and the gradients of activations.
#include <ATen/ops/elu_backward_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu_backward_meta.h>
#include <ATen/ops/hardshrink_backward_meta.h>
#include <ATen/ops/hardsigmoid_backward_meta.h>
#include <ATen/ops/leaky_relu_backward_meta.h>
#include <ATen/ops/logit_backward_meta.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid_backward_meta.h>
#include <ATen/ops/silu_backward_meta.h>
#include <ATen/ops/softplus_backward_meta.h>
#include <ATen/ops/softshrink_backward_meta.h>
#include <ATen/ops/tanh_backward_meta.h>
#include <ATen/ops/threshold_backward_meta.h>
#include <ATen/ops/threshold_meta.h>

#include <cmath>
#include <limits>

#include "aten/elementwise.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "kernels/binary.h"
#include "refnpu/fault.h"

namespace refnpu::activation_backward {
namespace {

using T = at::Tensor;
using S = at::Scalar;

void run(const char* name, at::TensorIteratorBase& iter, Binary op, unsigned supported, const Params& params = {}) {
  check_dtype(name, iter.common_dtype(), supported);
  const DType common = to_dtype(iter.common_dtype());
  launch_pointwise(iter,
                   {.op = name, .common = common, .row = binary_row(op, compute_dtype(common)), .params = params});
}

template <class Op>
T& run_floats(const char* name, Op& op, T& out, Binary which, const Params& params = {}) {
  run(name, op, which, kFloats, params);
  op.finish();
  return out;
}

// -- of the gradient and one tensor: X(op, dtypes)
#define REFNPU_BACKWARDS(X)               \
  X(sigmoid_backward, kFloats | kComplex) \
  X(tanh_backward, kFloats | kComplex) X(silu_backward, kFloats | kComplex) X(hardsigmoid_backward, kFloats)

#define REFNPU_DEFINE(name, supported)                         \
  T& name##_out(const T& grad, const T& self, T& grad_input) { \
    Structured<at::meta::structured_##name> op(grad_input);    \
    op.meta(grad, self);                                       \
    run(#name, op, Binary::name, supported);                   \
    op.finish();                                               \
    return grad_input;                                         \
  }
REFNPU_BACKWARDS(REFNPU_DEFINE)
#undef REFNPU_DEFINE

// -- with scalar arguments
T& gelu_backward_out(const T& grad, const T& self, c10::string_view approximate, T& grad_input) {
  Structured<at::meta::structured_gelu_backward> op(grad_input);
  op.meta(grad, self, approximate);
  const bool tanh = approximate == "tanh" && !fault(Fault::gelu_gradient_ignores_tanh);
  return run_floats("gelu_backward", op, grad_input, tanh ? Binary::gelu_tanh_backward : Binary::gelu_erf_backward);
}

T& elu_backward_out(const T& grad, const S& alpha, const S& scale, const S& input_scale, bool is_result, const T& self,
                    T& grad_input) {
  Structured<at::meta::structured_elu_backward> op(grad_input);
  op.meta(grad, alpha, scale, input_scale, is_result, self);
  if (fault(Fault::elu_backward_ignores_is_result)) is_result = false;
  const double negative_scale = alpha.to<double>() * (fault(Fault::selu_gradient_lacks_scale) ? 1 : scale.to<double>());
  return run_floats("elu_backward", op, grad_input, is_result ? Binary::elu_backward_from_result : Binary::elu_backward,
                    params_of(negative_scale, scale, input_scale));
}

T& leaky_relu_backward_out(const T& grad, const T& self, const S& slope, bool self_is_result, T& grad_input) {
  Structured<at::meta::structured_leaky_relu_backward> op(grad_input);
  op.meta(grad, self, slope, self_is_result);  // its iterator takes self before the gradient
  return run_floats("leaky_relu_backward", op, grad_input, Binary::leaky_relu_backward, params_of(slope));
}

T& softplus_backward_out(const T& grad, const T& self, const S& beta, const S& threshold, T& grad_input) {
  Structured<at::meta::structured_softplus_backward> op(grad_input);
  op.meta(grad, self, beta, threshold);
  return run_floats("softplus_backward", op, grad_input, Binary::softplus_backward, params_of(beta, threshold));
}

T& softshrink_backward_out(const T& grad, const T& self, const S& lambda, T& grad_input) {
  Structured<at::meta::structured_softshrink_backward> op(grad_input);
  op.meta(grad, self, lambda);
  return run_floats("softshrink_backward", op, grad_input, Binary::shrink_backward, params_of(lambda));
}

T& hardshrink_backward_out(const T& grad, const T& self, const S& lambda, T& grad_input) {
  Structured<at::meta::structured_hardshrink_backward> op(grad_input);
  op.meta(grad, self, lambda);
  return run_floats("hardshrink_backward", op, grad_input, Binary::shrink_backward, params_of(lambda));
}

T& logit_backward_out(const T& grad, const T& self, std::optional<double> eps, T& grad_input) {
  Structured<at::meta::structured_logit_backward> op(grad_input);
  op.meta(grad, self, eps);
  return run_floats("logit_backward", op, grad_input, Binary::logit_backward, params_of(eps.value_or(-1.0)));
}

constexpr unsigned kReals = kIntegers | kFloats;

// As a number of that dtype: a negative one is a large one in an unsigned dtype, as on CPU. Floats of 16 bits are
// compared with a float.
S in_dtype(const S& number, at::ScalarType dtype) {
  const auto held = at::isReducedFloatingType(dtype) ? at::kFloat : dtype;
  return at::scalar_tensor(number, at::device(at::kCPU).dtype(held)).item();
}

T& threshold_out(const T& self, const S& threshold, const S& value, T& out) {
  Structured<at::meta::structured_threshold> op(out);
  op.meta(self, threshold, value);
  const auto dtype = self.scalar_type();
  run("threshold", op, Binary::threshold, kReals, params_of(in_dtype(threshold, dtype), in_dtype(value, dtype)));
  op.finish();
  return out;
}

T& threshold_backward_out(const T& grad, const T& self, const S& threshold, T& grad_input) {
  Structured<at::meta::structured_threshold_backward> op(grad_input);
  op.meta(grad, self, threshold);  // its iterator takes self before the gradient
  S limit = in_dtype(threshold, self.scalar_type());
  const bool passes = limit.isFloatingPoint() && fault(Fault::relu_gradient_at_zero_passes);
  if (passes) limit = double(std::nextafter(float(limit.toDouble()), -std::numeric_limits<float>::infinity()));
  run("threshold_backward", op, Binary::threshold, kReals, params_of(limit, 0));
  op.finish();
  return grad_input;
}

// -- not structured
T& hardtanh_backward_out(const T& grad, const T& self, const S& min, const S& max, T& grad_input) {
  auto iter = at::TensorIterator::borrowing_binary_op(grad_input, grad, self);
  run("hardtanh_backward", iter, Binary::hardtanh_backward, kFloats, params_of(min, max));
  return grad_input;
}

T hardtanh_backward(const T& grad, const T& self, const S& min, const S& max) {
  T out;
  auto iter = at::TensorIterator::binary_op(out, grad, self);
  run("hardtanh_backward", iter, Binary::hardtanh_backward, kFloats, params_of(min, max));
  return iter.output();
}

// The functional forms of these are composite for a backend that registers only `.grad_input`, or none.
T silu_backward(const T& grad, const T& self) {
  T out = at::empty({0}, grad.options());
  return silu_backward_out(grad, self, out);
}

T mish_backward(const T& grad, const T& self) {
  T out;
  auto iter = at::TensorIterator::binary_op(out, grad, self);
  run("mish_backward", iter, Binary::mish_backward, kFloats);
  return iter.output();
}

T hardswish_backward(const T& grad, const T& self) {
  T out;
  auto iter = at::TensorIterator::binary_op(out, grad, self);
  run("hardswish_backward", iter, Binary::hardswish_backward, kFloats);
  return iter.output();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
#define REFNPU_REGISTER(op, supported) m.impl(#op ".grad_input", &op##_out);
  REFNPU_BACKWARDS(REFNPU_REGISTER)
#undef REFNPU_REGISTER
  m.impl("gelu_backward.grad_input", &gelu_backward_out);
  m.impl("elu_backward.grad_input", &elu_backward_out);
  m.impl("leaky_relu_backward.grad_input", &leaky_relu_backward_out);
  m.impl("softplus_backward.grad_input", &softplus_backward_out);
  m.impl("softshrink_backward.grad_input", &softshrink_backward_out);
  m.impl("hardshrink_backward.grad_input", &hardshrink_backward_out);
  m.impl("logit_backward.grad_input", &logit_backward_out);
  m.impl("threshold.out", &threshold_out);
  m.impl("threshold_backward.grad_input", &threshold_backward_out);
  m.impl("hardtanh_backward.grad_input", &hardtanh_backward_out);
  m.impl("hardtanh_backward", &hardtanh_backward);
  m.impl("hardswish_backward", &hardswish_backward);
  m.impl("silu_backward", &silu_backward);
  m.impl("mish_backward", &mish_backward);
}

}  // namespace refnpu::activation_backward
