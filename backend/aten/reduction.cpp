#include "aten/reduction.h"

#include <ATen/ops/empty.h>

#include "refnpu/fault.h"

namespace refnpu {

at::Tensor empty_like_reduced(const at::Tensor& self, DimMask reduced, bool keepdim, at::ScalarType type) {
  return at::empty(reduced_shape(self, reduced, keepdim), self.options().dtype(type));
}

at::Tensor cast_to(const at::Tensor& self, at::ScalarType type) {
  return self.scalar_type() == type ? self : self.to(type);
}

void spoil_kept_strides(const at::Tensor& out, DimMask reduced, bool keepdim) {
  if (!keepdim || !fault(Fault::keepdim_stride_wrong)) return;
  at::DimVector strides(out.strides());
  for (int64_t d = 0; d < out.dim(); ++d) strides[d] += reduced[d] ? 1 : 0;
  out.unsafeGetTensorImpl()->set_sizes_and_strides(out.sizes(), strides);
}

}  // namespace refnpu
