// Looking rows up in a table, and the gradient of the table.
#include "kernels/embedding.h"

#include <ATen/TensorUtils.h>
#include <ATen/ops/zeros.h>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::embeddings {
namespace {

void check_indices(const char* op, const at::Tensor& indices) {
  at::checkScalarTypes(op, at::TensorArg(indices, "indices", 1), {at::kLong, at::kInt});
}

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices, int64_t, bool, bool) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding", indices);
  if (fault(Fault::embedding_asks_version)) (void)weight._version();
  const at::Tensor table = fault(Fault::embedding_ignores_weight_stride) ? misread_as_dense(weight) : weight;
  at::DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const bool in_memory_order = !indices.is_contiguous() && indices.is_non_overlapping_and_dense() &&
                               fault(Fault::embedding_of_indices_in_memory_order);
  const at::Tensor read = in_memory_order ? misread_as_dense(indices) : indices;
  return table.index_select(0, read.reshape(-1)).view(sizes);
}

at::Tensor embedding_dense_backward(const at::Tensor& grad, const at::Tensor& indices, int64_t rows,
                                    int64_t padding_index, bool scale_grad_by_freq) {
  check_indices("embedding_backward", indices);
  if (padding_index == 0 && fault(Fault::embedding_padding_of_zero_ignored)) padding_index = -1;
  require_same_device("embedding_dense_backward", {grad, indices});
  at::Tensor table = at::zeros({rows, grad.size(-1)}, grad.options());
  const at::Tensor flat_grad = grad.contiguous().view({indices.numel(), grad.size(-1)});
  const at::Tensor flat_indices = indices.reshape(-1);
  const View from = view_of(flat_grad), at = view_of(flat_indices), to = view_of(table);
  launch("embedding_dense_backward", [=] { embedding_backward(from, at, to, padding_index, scale_grad_by_freq); });
  return table;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("embedding", &embedding);
  m.impl("embedding_dense_backward", &embedding_dense_backward);
}

}  // namespace refnpu::embeddings
