// Filling a tensor with one value.
#include "kernels/fill.h"

#include <ATen/TensorIterator.h>

#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/launch.h"

namespace refnpu::fills {
namespace {

// Filling is idempotent, so an output that overlaps itself is fine.
at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(false)
                  .check_all_same_dtype(false)
                  .add_output(self)
                  .resize_outputs(false)
                  .build();
  const Immediate element = immediate_of(value, to_dtype(self.scalar_type()));
  const Nest<1> nest = nest_of<1>(iter);
  if (nest.numel() > 0) launch("fill", [=] { fill_kernel(nest, element); });
  return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(),
              " dimensions.");
  if (self.device() != value.device()) return fill_scalar(self, value.item());
  self.copy_(self.is_alias_of(value) ? value.clone() : value);
  return self;
}

at::Tensor& zero(at::Tensor& self) { return fill_scalar(self, 0); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("fill_.Scalar", &fill_scalar);
  m.impl("fill_.Tensor", &fill_tensor);
  m.impl("zero_", &zero);
}

}  // namespace refnpu::fills
