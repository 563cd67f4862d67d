// How an output that the caller gave is made to fit what a structured op computes.
#include "aten/structured.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/empty_strided.h>

#include "refnpu/fault.h"

namespace refnpu {

void resize_structured_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                           const at::TensorOptions& options) {
  if (options.dtype() != out.dtype() && fault(Fault::out_resized_before_dtype_check)) out.resize_(sizes);
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
              out.dtype(), " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              out.device(), " instead");
  if (!at::native::resize_output(out, sizes)) return;  // strides are advice: an output of the right size keeps its own
  if (fault(Fault::resized_out_loses_offset)) out.unsafeGetTensorImpl()->set_storage_offset(0);
  if (!strides.empty()) {
    out.as_strided_(sizes, strides);
  } else if (options.memory_format_opt().has_value()) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
  }
}

at::Tensor make_proxy_out(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                          const at::TensorOptions& options) {
  if (strides.empty() || out.strides() == strides) return at::Tensor();
  return at::empty_strided(sizes, strides, options);
}

}  // namespace refnpu
