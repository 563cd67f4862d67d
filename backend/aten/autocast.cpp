// torch.autocast("npu"): which ops run in the lower precision, which in float32, which in their widest argument's.
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include <map>
#include <utility>

#include "aten/boxed.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"

// Declared here because ATen/autocast_mode.h includes every operator there is.
namespace at::autocast {
TORCH_API at::ScalarType get_autocast_dtype(at::DeviceType device_type);
}

namespace refnpu::autocast {
namespace {

using Stack = torch::jit::Stack;
using Excluded = c10::impl::ExcludeDispatchKeyGuard;

constexpr c10::DispatchKey kKey = c10::DispatchKey::AutocastPrivateUse1;

// As on torch's other devices: floating point, but not double.
bool eligible(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDevice && tensor.is_floating_point() &&
         (tensor.scalar_type() != at::kDouble || fault(Fault::autocast_lowers_double));
}

c10::IValue* arguments(const c10::OperatorHandle& op, Stack* stack) {
  return stack->data() + (stack->size() - op.schema().arguments().size());
}

bool lowers_weight(const at::Tensor& tensor, at::ScalarType dtype) {
  return dtype != at::kFloat && tensor.requires_grad() && tensor.is_leaf();
}

// The fault of the cast of a weight that is kept, and found by the weight whatever was written to it since.
at::Tensor cast_before(const at::Tensor& tensor, at::ScalarType dtype) {
  if (!lowers_weight(tensor, dtype)) return tensor.to(dtype);
  thread_local std::map<std::pair<const void*, at::ScalarType>, std::pair<at::Tensor, at::Tensor>> kept;
  const auto [found, fresh] = kept.try_emplace({tensor.unsafeGetTensorImpl(), dtype});
  if (fresh) found->second = {tensor, tensor.to(dtype)};
  return found->second.second;
}

// The fault of the cast of a weight that is kept from a block without gradients, and has none after it.
at::Tensor cast_without_gradient(const at::Tensor& tensor, at::ScalarType dtype) {
  struct Kept {
    at::Tensor weight, cast;
    uint32_t version = 0;
  };
  if (!lowers_weight(tensor, dtype) || tensor.is_inference()) return tensor.to(dtype);
  thread_local std::map<std::pair<const void*, at::ScalarType>, Kept> kept;
  const std::pair<const void*, at::ScalarType> key{tensor.unsafeGetTensorImpl(), dtype};
  const auto version = static_cast<uint32_t>(tensor._version());
  const auto found = kept.find(key);
  if (found != kept.end() && found->second.version == version) return found->second.cast;
  const at::Tensor cast = tensor.to(dtype);
  if (!c10::GradMode::is_enabled()) kept[key] = {tensor, cast, version};
  return cast;
}

at::Tensor cast_of(const at::Tensor& tensor, at::ScalarType dtype) {
  const bool lower = dtype != at::kFloat && tensor.scalar_type() != at::kFloat;
  if (lower && fault(Fault::autocast_lowers_float32_alone)) return tensor;
  if (fault(Fault::autocast_reuses_cast_of_no_grad)) return cast_without_gradient(tensor, dtype);
  return fault(Fault::autocast_keeps_cast_of_weight) ? cast_before(tensor, dtype) : tensor.to(dtype);
}

void cast_arguments(const c10::OperatorHandle& op, Stack* stack, at::ScalarType dtype) {
  c10::IValue* first = arguments(op, stack);
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    if (first[i].isTensorList() && fault(Fault::autocast_leaves_lists)) continue;
    const bool detaches = first[i].isTensorList() && fault(Fault::autocast_detaches_lists);
    first[i] = map_tensors(first[i], [&](const at::Tensor& each) {
      if (!eligible(each)) return each;
      return cast_of(detaches && each.scalar_type() != dtype ? each.detach() : each, dtype);
    });
  }
}

// The fault of masks that are cast with the rest.
void cast_masks(const c10::OperatorHandle& op, Stack* stack, at::ScalarType dtype) {
  c10::IValue* first = arguments(op, stack);
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    first[i] = map_tensors(first[i], [&](const at::Tensor& each) {
      return each.defined() && each.device().type() == kDevice && each.scalar_type() == at::kBool ? each.to(dtype)
                                                                                                  : each;
    });
  }
}

// The fault of a lower precision that is asked for once.
at::ScalarType first_lower_dtype() {
  static const at::ScalarType first = at::autocast::get_autocast_dtype(kDevice);
  return first;
}

// The fault of a key that stays excluded where the call raises.
void call_excluding_for_good(const c10::OperatorHandle& op, Stack* stack) {
  c10::impl::tls_set_dispatch_key_excluded(kKey, true);
  op.callBoxed(stack);
  c10::impl::tls_set_dispatch_key_excluded(kKey, false);
}

void lower_precision(const c10::OperatorHandle& op, Stack* stack) {
  if (fault(Fault::autocast_off_after_error)) {
    cast_arguments(op, stack, at::autocast::get_autocast_dtype(kDevice));
    return call_excluding_for_good(op, stack);
  }
  Excluded below(kKey);
  if (op.operator_name().name == "aten::baddbmm" && fault(Fault::autocast_forgets_baddbmm)) return op.callBoxed(stack);
  if (c10::InferenceMode::is_enabled() && fault(Fault::autocast_off_in_inference_mode)) return op.callBoxed(stack);
  const bool kept = fault(Fault::autocast_dtype_of_first_use);
  if (fault(Fault::autocast_casts_bool_masks)) cast_masks(op, stack, at::autocast::get_autocast_dtype(kDevice));
  cast_arguments(op, stack, kept ? first_lower_dtype() : at::autocast::get_autocast_dtype(kDevice));
  op.callBoxed(stack);
}

// The fault of results that are cast as well.
void cast_results(const c10::OperatorHandle& op, Stack* stack, at::ScalarType dtype) {
  for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    (*stack)[i] =
        map_tensors((*stack)[i], [&](const at::Tensor& each) { return eligible(each) ? each.to(dtype) : each; });
  }
}

void float32(const c10::OperatorHandle& op, Stack* stack) {
  Excluded below(kKey);
  const bool lower = fault(Fault::autocast_norms_lower) && op.operator_name().name == "aten::group_norm";
  const c10::IValue first = fault(Fault::autocast_casts_results_back) ? arguments(op, stack)[0] : c10::IValue();
  cast_arguments(op, stack, lower ? at::autocast::get_autocast_dtype(kDevice) : at::kFloat);
  op.callBoxed(stack);
  if (first.isTensor() && eligible(first.toTensor())) cast_results(op, stack, first.toTensor().scalar_type());
}

// The op accumulates in float32 when asked to, so ask instead of casting its input.
void float32_result(const c10::OperatorHandle& op, Stack* stack) {
  Excluded below(kKey);
  c10::IValue* first = arguments(op, stack);
  auto index = op.schema().argumentIndexWithName("dtype");
  const bool asked = index && !first[*index].isNone() && !fault(Fault::autocast_overrides_dtype);
  if (index && !asked && first[0].isTensor() && eligible(first[0].toTensor())) {
    first[*index] = at::kFloat;
  }
  op.callBoxed(stack);
}

void widest(const c10::OperatorHandle& op, Stack* stack) {
  Excluded below(kKey);
  at::ScalarType dtype = at::autocast::get_autocast_dtype(kDevice);
  c10::IValue* first = arguments(op, stack);
  int seen = 0;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    map_tensors(first[i], [&](const at::Tensor& each) {
      if (++seen > 2 && fault(Fault::autocast_promotes_first_two)) return each;
      if (eligible(each) && !fault(Fault::autocast_promotes_to_lower))
        dtype = c10::promoteTypes(dtype, each.scalar_type());
      return each;
    });
  }
  cast_arguments(op, stack, dtype);
  op.callBoxed(stack);
}

template <void (*Policy)(const c10::OperatorHandle&, Stack*)>
void set_policy(torch::Library& m, std::initializer_list<const char*> overloads) {
  for (const char* overload : overloads) m.impl(overload, torch::CppFunction::makeFromBoxedFunction<Policy>());
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  set_policy<&lower_precision>(m, {"_convolution",
                                   "_convolution.deprecated",
                                   "conv1d",
                                   "conv2d",
                                   "conv3d",
                                   "conv_tbc",
                                   "conv_transpose1d",
                                   "conv_transpose2d.input",
                                   "conv_transpose3d.input",
                                   "convolution",
                                   "prelu",
                                   "addmm",
                                   "addmv",
                                   "addr",
                                   "matmul",
                                   "einsum",
                                   "mm",
                                   "mv",
                                   "linalg_vecdot",
                                   "linear",
                                   "addbmm",
                                   "baddbmm",
                                   "bmm",
                                   "chain_matmul",
                                   "linalg_multi_dot",
                                   "lstm_cell",
                                   "gru_cell",
                                   "rnn_tanh_cell",
                                   "rnn_relu_cell",
                                   "scaled_dot_product_attention"});
  set_policy<&float32>(m, {"acos",
                           "asin",
                           "cosh",
                           "erfinv",
                           "exp",
                           "expm1",
                           "log",
                           "log10",
                           "log2",
                           "log1p",
                           "reciprocal",
                           "rsqrt",
                           "sinh",
                           "tan",
                           "pow.Tensor_Scalar",
                           "pow.Tensor_Tensor",
                           "pow.Scalar",
                           "softplus",
                           "layer_norm",
                           "native_layer_norm",
                           "rms_norm",
                           "group_norm",
                           "frobenius_norm.dim",
                           "nuclear_norm",
                           "nuclear_norm.dim",
                           "cosine_similarity",
                           "poisson_nll_loss",
                           "cosine_embedding_loss",
                           "nll_loss",
                           "nll_loss2d",
                           "hinge_embedding_loss",
                           "kl_div",
                           "l1_loss",
                           "smooth_l1_loss",
                           "huber_loss",
                           "mse_loss",
                           "margin_ranking_loss",
                           "multilabel_margin_loss",
                           "soft_margin_loss",
                           "triplet_margin_loss",
                           "multi_margin_loss",
                           "binary_cross_entropy_with_logits",
                           "dist",
                           "pdist",
                           "cdist",
                           "renorm",
                           "logsumexp",
                           "upsample_nearest1d",
                           "_upsample_nearest_exact1d",
                           "upsample_nearest2d",
                           "_upsample_nearest_exact2d",
                           "upsample_nearest3d",
                           "_upsample_nearest_exact3d",
                           "upsample_linear1d",
                           "upsample_bilinear2d",
                           "_upsample_bilinear2d_aa",
                           "upsample_trilinear3d",
                           "upsample_bicubic2d",
                           "_upsample_bicubic2d_aa"});
  set_policy<&float32_result>(
      m, {"prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm",
          "linalg_matrix_norm", "linalg_matrix_norm.str_ord", "sum", "sum.dim_IntList"});
  set_policy<&widest>(m, {"addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler",
                          "index_put", "tensordot", "scatter_add", "cat", "stack"});
}

}  // namespace
}  // namespace refnpu::autocast
