// An op of the backend's own with a gradient of its own: torch.ops.npu.swiglu(gate, up) = silu(gate) * up.
//
// Autograd does not know the op, so its kernel for AutogradPrivateUse1 records the node of the graph, then calls the op
// again below autograd, where the kernel for PrivateUse1 computes.
#include "kernels/swiglu.h"

#include <ATen/TensorIterator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "aten/elementwise.h"
#include "aten/register.h"

namespace refnpu::swiglus {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void check_pair(const Tensor& gate, const Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes(), "swiglu: expected gate and up of one shape, but got ", gate.sizes(), " and ",
              up.sizes());
  TORCH_CHECK(gate.scalar_type() == up.scalar_type(), "swiglu: expected gate and up of one dtype, but got ",
              gate.scalar_type(), " and ", up.scalar_type());
}

// A new tensor: what `row` computes of the inputs.
template <class... Inputs>
Tensor computed(const char* op, Row (*row)(DType), const Tensor& first, const Inputs&... others) {
  at::TensorIteratorConfig config;
  config.add_owned_output(Tensor()).add_const_input(first);
  (config.add_const_input(others), ...);
  auto iter = config.build();
  check_dtype(op, iter.common_dtype(), kFloats);
  const DType common = to_dtype(iter.common_dtype());
  launch_pointwise(iter, {.op = op, .common = common, .row = row(compute_dtype(common))});
  return iter.output();
}

// -- PrivateUse1: the kernels
Tensor swiglu(const Tensor& gate, const Tensor& up) {
  check_pair(gate, up);
  return computed("swiglu", swiglu_row, gate, up);
}

std::tuple<Tensor, Tensor> swiglu_backward(const Tensor& grad, const Tensor& gate, const Tensor& up) {
  return {computed("swiglu_backward", swiglu_gate_backward_row, grad, gate, up),
          computed("swiglu_backward", swiglu_up_backward_row, grad, gate)};
}

// -- Meta: shapes and dtypes, for fake tensors and torch.compile
Tensor swiglu_meta(const Tensor& gate, const Tensor& up) {
  check_pair(gate, up);
  return at::empty_like(gate);
}

std::tuple<Tensor, Tensor> swiglu_backward_meta(const Tensor&, const Tensor& gate, const Tensor& up) {
  return {at::empty_like(gate), at::empty_like(up)};
}

// -- AutogradPrivateUse1
template <class Function>
auto op_named(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up) {
    static const auto op = op_named<decltype(swiglu)>("npu::swiglu");
    context->save_for_backward({gate, up});
    at::AutoDispatchBelowADInplaceOrView below_autograd;
    return op.call(gate, up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    static const auto op = op_named<decltype(swiglu_backward)>("npu::swiglu_backward");
    const variable_list saved = context->get_saved_variables();
    const auto [gate, up] = op.call(grads[0], saved[0], saved[1]);
    return {gate, up};
  }
};

Tensor swiglu_autograd(const Tensor& gate, const Tensor& up) { return Swiglu::apply(gate, up); }

}  // namespace

TORCH_LIBRARY(npu, m) {
  m.def("swiglu(Tensor gate, Tensor up) -> Tensor");
  m.def("swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(npu, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("swiglu", &swiglu);
  m.impl("swiglu_backward", &swiglu_backward);
}

TORCH_LIBRARY_IMPL(npu, Meta, m) {
  m.impl("swiglu", &swiglu_meta);
  m.impl("swiglu_backward", &swiglu_backward_meta);
}

TORCH_LIBRARY_IMPL(npu, AutogradPrivateUse1, m) {
  m.impl("swiglu", &swiglu_autograd);
  m.impl("swiglu_backward", torch::autograd::autogradNotImplementedFallback());  // no second derivative
}

}  // namespace refnpu::swiglus
