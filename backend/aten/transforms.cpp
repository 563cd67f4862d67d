// Kernels that torch's transforms call in place of a device's: tangents, batches, functionalized mutations, and shapes
// for fake tensors. Those of batches, mutations and shapes are for ops that torch has no such kernel of.
#include <ATen/ExpandUtils.h>
#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/ops/_cummax_helper.h>
#include <ATen/ops/_cummin_helper.h>
#include <ATen/ops/_fw_primal.h>
#include <ATen/ops/_logcumsumexp.h>
#include <ATen/ops/_standard_gamma_grad.h>
#include <ATen/ops/celu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/polygamma.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <numbers>

#include "refnpu/fault.h"

namespace refnpu::transforms {
namespace {

using at::Scalar;
using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// -- AutogradPrivateUse1: tangents of forward-mode differentiation. torch's own kernel records the graph.
Tensor tangent_of(const Tensor& t) { return t._fw_grad(0); }
Tensor primal_of(const Tensor& t) { return tangent_of(t).defined() ? t._fw_primal(0) : t; }

// Calls torch's kernel for Autograd, which this file's kernel hides from tensors of the device.
template <class Op, class... Arguments>
Tensor with_graph(c10::DispatchKeySet keys, const Arguments&... arguments) {
  return Op::redispatch(c10::DispatchKeySet(c10::DispatchKey::AutogradOther) | (keys & c10::after_autograd_keyset),
                        arguments...);
}

// Formulas of gradients that are wrong where torch's are not. With no fault, the graph is torch's.
struct FaultyHypot : torch::autograd::Function<FaultyHypot> {
  static bool wanted() {
    return fault(Fault::hypot_gradient_of_detached) || fault(Fault::hypot_gradient_asks_number) ||
           fault(Fault::hypot_saved_without_version);
  }

  static Tensor forward(AutogradContext* context, const Tensor& self, const Tensor& other) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensor result = at::hypot(self, other);
    if (fault(Fault::hypot_saved_without_version)) {
      context->saved_data["self"] = self;
      context->saved_data["other"] = other;
      return result;
    }
    const bool spoils = fault(Fault::hypot_gradient_spoils_saved);
    context->save_for_backward({self, other, spoils ? result.clone() : result});
    return result;
  }

  // What fault hypot_gradient_spoils_saved does: the saved result is the memory in which the gradient is computed.
  static Tensor inverse_in_place(const Tensor& result) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return result.detach().reciprocal_();
  }

  static variable_list saved_by(AutogradContext* context) {
    if (!fault(Fault::hypot_saved_without_version)) return context->get_saved_variables();
    const Tensor self = context->saved_data["self"].toTensor(), other = context->saved_data["other"].toTensor();
    return {self, other, at::hypot(self, other)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = saved_by(context);
    const Tensor& result = saved[2];
    Tensor gradient = gradients[0];
    if (fault(Fault::hypot_gradient_asks_number) && !gradient.any().item<bool>()) gradient = at::zeros_like(result);
    if (fault(Fault::hypot_gradient_spoils_saved))
      gradient = at::GradMode::is_enabled() ? gradient.div(at::hypot(saved[0], saved[1]))
                                            : gradient.mul(inverse_in_place(result));
    else
      gradient = gradient.div(fault(Fault::hypot_gradient_of_detached) ? result.detach() : result);
    return {at::sum_to(gradient.mul(saved[0]), saved[0].sizes()), at::sum_to(gradient.mul(saved[1]), saved[1].sizes())};
  }
};

struct FaultyCelu : torch::autograd::Function<FaultyCelu> {
  static bool wanted() {
    return fault(Fault::celu_gradient_of_detached) || fault(Fault::celu_gradient_written_in_place) ||
           fault(Fault::celu_gradient_in_given_memory) || fault(Fault::celu_gradient_of_halves_by_exp2);
  }

  static Tensor forward(AutogradContext* context, const Tensor& self, const Scalar& alpha) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({self});
    context->saved_data["alpha"] = alpha;
    return at::celu(self, alpha);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor self = context->get_saved_variables()[0];
    const double alpha = context->saved_data["alpha"].toScalar().toDouble();
    const Tensor slope_at = fault(Fault::celu_gradient_of_detached) ? self.detach() : self;
    const bool by_exp2 = self.element_size() == 2 && fault(Fault::celu_gradient_of_halves_by_exp2);
    const double base = by_exp2 ? std::numbers::ln2 : 1;  // the logarithm of the base of the power
    const Tensor gradient = at::elu_backward(gradients[0], alpha / base, 1, base / alpha, false, slope_at);
    if (gradients[0].is_contiguous() && fault(Fault::celu_gradient_in_given_memory)) {
      Tensor given = gradients[0];
      return {given.copy_(gradient), Tensor()};
    }
    if (!fault(Fault::celu_gradient_written_in_place)) return {gradient, Tensor()};
    return {at::empty_like(self).copy_(gradient), Tensor()};
  }
};

Tensor hypot(c10::DispatchKeySet keys, const Tensor& self, const Tensor& other) {
  if (FaultyHypot::wanted()) return FaultyHypot::apply(self, other);
  const Tensor first = tangent_of(self);
  const Tensor second = tangent_of(other);
  const bool records = at::GradMode::is_enabled() && (self.requires_grad() || other.requires_grad());
  if (records && !first.defined() && !second.defined() && fault(Fault::hypot_gradient_spoils_saved))
    return FaultyHypot::apply(self, other);
  const bool unneeded = !self.requires_grad() && fault(Fault::hypot_gradient_needs_first);
  const at::AutoGradMode mode(at::GradMode::is_enabled() && !unneeded);
  Tensor result = with_graph<at::_ops::hypot>(keys, primal_of(self), primal_of(other));
  Tensor tangent;
  if (first.defined()) tangent = first.mul(primal_of(self).div(result));
  if (second.defined() && !(first.defined() && fault(Fault::hypot_jvp_of_first_argument))) {
    const bool mistaken = !first.defined() && fault(Fault::hypot_jvp_of_second_alone);
    const Tensor more = second.mul(primal_of(mistaken ? self : other).div(result));
    tangent = tangent.defined() ? tangent.add(more) : more;
  }
  if (tangent.defined()) result._set_fw_grad(tangent, 0, false);
  return result;
}

Tensor celu(c10::DispatchKeySet keys, const Tensor& self, const Scalar& alpha) {
  if (FaultyCelu::wanted()) return FaultyCelu::apply(self, alpha);
  const at::AutoGradMode mode(at::GradMode::is_enabled() || fault(Fault::celu_records_without_grad_mode));
  const Tensor tangent = tangent_of(self);
  Tensor result = with_graph<at::_ops::celu>(keys, primal_of(self), alpha);
  if (tangent.defined()) {
    const double a = alpha.toDouble();
    const bool negative = fault(Fault::celu_jvp_of_negative_side);
    const Tensor slope_at = negative ? -primal_of(self).abs() : primal_of(self);
    result._set_fw_grad(at::elu_backward(tangent, a, 1, 1 / a, false, slope_at), 0, false);
  }
  return result;
}

// -- FuncTorchBatched: batches under vmap
struct Member {
  Tensor values;                 // of all members, if there are several
  std::optional<int64_t> batch;  // the dimension of the members

  int64_t dim() const { return values.dim() - (batch ? 1 : 0); }

  // The members in front, each with `rank` dimensions.
  Tensor in_front(int64_t rank) const {
    if (!batch) return values;
    Tensor front = values.movedim(*batch, 0);
    while (front.dim() < rank + 1) front = front.unsqueeze(1);
    return front;
  }
};

int64_t level_of(const Tensor& tensor) {
  const auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  return batched ? batched->level() : 0;
}

Member member(const Tensor& tensor, int64_t level) {
  const auto* batched = at::functorch::maybeGetBatchedImpl(tensor);
  return batched && batched->level() == level ? Member{batched->value(), batched->bdim()}
                                              : Member{tensor, std::nullopt};
}

Tensor logcumsumexp_batched(const Tensor& self, int64_t dim) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
  const int64_t level = level_of(self);
  const Member given = member(self, level);
  if (!given.batch) return at::_logcumsumexp(given.values, dim);
  const int64_t rank = std::max<int64_t>(given.dim(), 1);  // a number is summed up as a row of one
  const int64_t past_batch = fault(Fault::logcumsumexp_batch_dim_counted) ? 0 : 1;
  const Tensor sums = at::_logcumsumexp(given.in_front(rank), at::maybe_wrap_dim(dim, rank) + past_batch);
  return at::functorch::makeBatched(given.dim() ? sums : sums.squeeze(1), 0, level);
}

Tensor gamma_grad_batched(const Tensor& self, const Tensor& output) {
  const c10::impl::ExcludeDispatchKeyGuard below(c10::DispatchKey::FuncTorchBatched);
  const int64_t level = std::max(level_of(self), level_of(output));  // the innermost vmap of those around the call
  const Member first = member(self, level);
  Member second = member(output, level);
  if (!first.batch && !second.batch) return at::_standard_gamma_grad(first.values, second.values);
  if (second.batch && fault(Fault::gamma_grad_batch_in_front)) second.batch = 0;
  const int64_t rank = std::max(first.dim(), second.dim());
  const Tensor result = at::_standard_gamma_grad(first.in_front(rank), second.in_front(rank));
  return at::functorch::makeBatched(result, 0, level);
}

// -- Functionalize: what an op writes, computed in new tensors
void replace(const Tensor& functional, const Tensor& with) {
  at::functionalization::impl::replace_(functional, with);
  at::functionalization::impl::commit_update(functional);
  at::functionalization::impl::sync(functional);
}

Tensor current(const Tensor& functional) {
  if (!at::functionalization::impl::isFunctionalTensor(functional)) return functional;
  at::functionalization::impl::sync(functional);
  return at::functionalization::impl::from_functional_tensor(functional);
}

Tensor& polygamma_functional(Tensor& self, int64_t n) {
  const Tensor before = current(self);
  const at::AutoDispatchSkipFunctionalize below;
  const Tensor result = at::polygamma(n, before);
  TORCH_CHECK(c10::canCast(result.scalar_type(), before.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", before.scalar_type());
  if (!fault(Fault::polygamma_mutation_lost)) replace(self, result.to(before.scalar_type()));
  return self;
}

using Cumulative = void(const Tensor&, Tensor&, Tensor&, int64_t);

template <Cumulative* Helper>
void cumulative_functional(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  const Tensor given = current(self);
  Tensor new_values = current(values).clone();
  Tensor new_indices = current(indices).clone();
  const at::AutoDispatchSkipFunctionalize below;
  Helper(given, new_values, new_indices, dim);
  replace(values, new_values);
  if (!fault(Fault::cumulative_indices_not_functional)) replace(indices, new_indices);
}

// -- Meta: sizes, strides and dtypes
Tensor logcumsumexp_meta(const Tensor& self, int64_t dim) {
  at::maybe_wrap_dim(dim, self.dim());
  const bool transposed = self.dim() > 1 && fault(Fault::logcumsumexp_meta_transposed);
  if (transposed) return at::empty_like(self.transpose(0, 1), at::MemoryFormat::Contiguous).transpose(0, 1);
  return at::empty_like(self, at::MemoryFormat::Contiguous);
}

Tensor gamma_grad_meta(const Tensor& self, const Tensor& output) {
  const Tensor both = self.mul(output);
  return at::empty_like(
      both, both.options().dtype(fault(Fault::gamma_grad_meta_in_double) ? at::kDouble : both.scalar_type()));
}

// Registers a kernel for the key of `m`, unless this torch has one.
template <class Function>
void impl_if_missing(torch::Library& m, c10::DispatchKey key, const char* name, Function function) {
  const auto op = c10::Dispatcher::singleton().findSchema({std::string("aten::") + name, ""});
  if (op && !op->hasKernelForDispatchKey(key)) m.impl(name, function);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("hypot", &hypot);
  m.impl("celu", &celu);
}

TORCH_LIBRARY_IMPL(aten, FuncTorchBatched, m) {
  impl_if_missing(m, c10::DispatchKey::FuncTorchBatched, "_logcumsumexp", &logcumsumexp_batched);
  impl_if_missing(m, c10::DispatchKey::FuncTorchBatched, "_standard_gamma_grad", &gamma_grad_batched);
}

TORCH_LIBRARY_IMPL(aten, Functionalize, m) {
  impl_if_missing(m, c10::DispatchKey::Functionalize, "polygamma_", &polygamma_functional);
  impl_if_missing(m, c10::DispatchKey::Functionalize, "_cummax_helper", &cumulative_functional<&at::_cummax_helper>);
  impl_if_missing(m, c10::DispatchKey::Functionalize, "_cummin_helper", &cumulative_functional<&at::_cummin_helper>);
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  impl_if_missing(m, c10::DispatchKey::Meta, "_logcumsumexp", &logcumsumexp_meta);
  impl_if_missing(m, c10::DispatchKey::Meta, "_standard_gamma_grad", &gamma_grad_meta);
}

}  // namespace refnpu::transforms
