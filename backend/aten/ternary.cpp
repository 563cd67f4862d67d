// Pointwise functions of three tensors.
#include "kernels/ternary.h"

#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/trunc.h>

#include "aten/elementwise.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "kernels/binary.h"
#include "refnpu/fault.h"

namespace refnpu::ternary {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;
constexpr unsigned kInexact = kFloats | kComplex;

void run(const char* name, at::TensorIteratorBase& iter, Row (*row)(DType), unsigned supported,
         const Params& params = {}) {
  check_dtype(name, iter.common_dtype(), supported);
  const DType common = to_dtype(iter.common_dtype());
  launch_pointwise(iter, {.op = name, .common = common, .row = row(compute_dtype(common)), .params = params});
}

template <Ternary Op>
Row row(DType compute) {
  return ternary_row(Op, compute);
}
template <Binary Op>
Row row(DType compute) {
  return binary_row(Op, compute);
}

at::Tensor& addcmul_out(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second,
                        const at::Scalar& value, at::Tensor& out) {
  Structured<at::meta::structured_addcmul> op(out);
  op.meta(self, first, second, value);
  run("addcmul", op, row<Ternary::addcmul>, kReals | kComplex | kComplexHalf, params_of(value));
  op.finish();
  return out;
}

at::Tensor& addcdiv_out(const at::Tensor& self, const at::Tensor& first, const at::Tensor& second,
                        const at::Scalar& value, at::Tensor& out) {
  if (out.is_same(self) && !out.is_contiguous() && fault(Fault::addcdiv_strided_in_place_lost)) {
    at::Tensor lost = out.contiguous();
    ternary::addcdiv_out(lost, first, second, value, lost);
    return out;
  }
  Structured<at::meta::structured_addcdiv> op(out);
  op.meta(self, first, second, value);
  run("addcdiv", op, row<Ternary::addcdiv>, kInexact, params_of(value));
  op.finish();
  return out;
}

at::Tensor& lerp_tensor_out(const at::Tensor& self, const at::Tensor& end, const at::Tensor& weight, at::Tensor& out) {
  if (!out.is_same(self) && out.sizes() == self.sizes() && fault(Fault::lerp_result_starts_from_self))
    return lerp_tensor_out(out.copy_(self), end, weight, out);
  Structured<at::meta::structured_lerp_Tensor> op(out);
  op.meta(self, end, weight);
  run("lerp", op, row<Ternary::lerp>, kInexact);
  op.finish();
  return out;
}

at::Tensor& lerp_scalar_out(const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight, at::Tensor& out) {
  Structured<at::meta::structured_lerp_Scalar> op(out);
  op.meta(self, end, weight);
  run("lerp", op, lerp_scalar_row, kInexact, params_of(weight));
  op.finish();
  return out;
}

// The fault: a bound of floats that is broadcast over integers becomes integers.
std::optional<at::Tensor> mistaken_bound(const at::Tensor& self, const std::optional<at::Tensor>& bound) {
  const bool is_float = bound && bound->defined() && bound->is_floating_point();
  return is_float && !self.is_floating_point() && bound->dim() < self.dim() ? std::optional(bound->trunc()) : bound;
}

at::Tensor& clamp_tensor_out(const at::Tensor& self, const std::optional<at::Tensor>& min,
                             const std::optional<at::Tensor>& max, at::Tensor& out) {
  const bool mistaken = fault(Fault::clamp_truncates_broadcast_bound);
  const std::optional<at::Tensor> bounds[] = {mistaken ? mistaken_bound(self, min) : min,
                                              mistaken ? mistaken_bound(self, max) : max};
  Structured<at::meta::structured_clamp_Tensor> op(out);
  const auto reference = [](const std::optional<at::Tensor>& bound) {
    return bound && bound->defined() ? at::OptionalTensorRef(*bound) : at::OptionalTensorRef();
  };
  const at::OptionalTensorRef low = reference(bounds[0]), high = reference(bounds[1]);
  op.meta(self, low, high);
  if (low.has_value() && high.has_value()) {
    run("clamp", op, row<Ternary::clamp>, kReals | kWideUnsignedOfExtrema);
  } else {
    run("clamp", op, low.has_value() ? row<Binary::maximum> : row<Binary::minimum>,
        kBool | kReals | kWideUnsignedOfExtrema);
  }
  op.finish();
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("addcmul.out", &addcmul_out);
  m.impl("addcdiv.out", &addcdiv_out);
  m.impl("lerp.Tensor_out", &lerp_tensor_out);
  m.impl("lerp.Scalar_out", &lerp_scalar_out);
  m.impl("clamp.Tensor_out", &clamp_tensor_out);
}

}  // namespace refnpu::ternary
