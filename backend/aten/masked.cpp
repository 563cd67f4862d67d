// masked_fill_: one value written where a mask is true.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>

#include "aten/elementwise.h"
#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "kernels/fill.h"
#include "refnpu/fault.h"

namespace refnpu::masked {
namespace {

void check_masked_fill(const at::Tensor& self, const at::Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.dtype());
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  at::assert_no_partial_overlap(self, mask);
}

// The fault that takes a mask for dense, though it repeats its elements over self.
at::Tensor misread_if_expanded(const at::Tensor& mask, const at::Tensor& self) {
  const c10::MaybeOwned<at::Tensor> over_self = at::expand_inplace(self, mask, "masked_fill_");
  bool repeats = false;
  for (int64_t d = 0; d < self.dim(); ++d) repeats |= over_self->stride(d) == 0 && self.size(d) > 1;
  return repeats ? misread_as_dense(*over_self) : mask;
}

at::Tensor& masked_fill_scalar(at::Tensor& self, const at::Tensor& given, const at::Scalar& value) {
  const bool bytes = given.scalar_type() == at::kByte && fault(Fault::masked_fill_takes_bytes);
  const at::Tensor mask = bytes ? given.to(at::kBool) : given;
  check_masked_fill(self, mask);
  const at::Tensor read = fault(Fault::masked_fill_ignores_expanded_mask) ? misread_if_expanded(mask, self) : mask;
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(false)  // an expanded self is deprecated, not forbidden
                  .check_all_same_dtype(false)
                  .resize_outputs(false)
                  .add_output(self)
                  .add_const_input(read)
                  .build();
  check_dtype("masked_fill", self.scalar_type(), kBool | kIntegers | kFloats | kComplex | kComplexHalf);
  const Immediate element = immediate_of(value, to_dtype(self.scalar_type()));
  const Nest<2> nest = nest_of<2>(iter);
  if (nest.numel() > 0) launch("masked_fill", [=] { masked_fill_kernel(nest, element); });
  return self;
}

at::Tensor& masked_fill_tensor(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  const at::Scalar number = value.item();
  const bool in_double = value.scalar_type() == at::kLong && fault(Fault::masked_fill_of_tensor_in_double);
  return masked_fill_scalar(self, mask, in_double ? at::Scalar(number.toDouble()) : number);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("masked_fill_.Scalar", &masked_fill_scalar);
  m.impl("masked_fill_.Tensor", &masked_fill_tensor);
}

}  // namespace refnpu::masked
