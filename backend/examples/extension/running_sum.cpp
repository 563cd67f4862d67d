// A custom op on npu tensors, in a library of its own: sample::running_sum(Tensor input) -> Tensor.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "refnpu/allocator.h"
#include "refnpu/guard.h"
#include "refnpu/launch.h"
#include "refnpu/stream.h"

namespace {

// The kernel gets pointers and numbers by value, and runs on the current stream of the current device.
at::Tensor running_sum(const at::Tensor& input) {
  TORCH_CHECK(input.dim() == 1 && input.scalar_type() == at::kFloat, "running_sum: expected a float vector, got ",
              input.dim(), " dimensions of ", input.scalar_type());
  const refnpu::NPUGuard guard(input.device());
  const at::Tensor dense = input.contiguous();
  at::Tensor output = at::empty_like(dense);

  // Scratch memory from the backend's allocator. A free is ordered after the work that was submitted before it.
  const c10::DataPtr scratch = refnpu::getNPUAllocator()->allocate(sizeof(float));
  const float* from = dense.const_data_ptr<float>();
  float* const to = output.mutable_data_ptr<float>();
  float* const total = static_cast<float*>(scratch.get());
  const int64_t n = dense.numel();
  refnpu::launch("sample::running_sum", [=] {
    *total = 0;
    for (int64_t i = 0; i < n; ++i) to[i] = *total += from[i];
  });
  return output;
}

// The default stream's id is 0.
int64_t current_stream_id(int64_t device) {
  return refnpu::getCurrentNPUStream(static_cast<c10::DeviceIndex>(device)).unwrap().id();
}

TORCH_LIBRARY(sample, m) {
  m.def("running_sum(Tensor input) -> Tensor");
  m.def("current_stream_id(int device) -> int", &current_stream_id);
}

TORCH_LIBRARY_IMPL(sample, PrivateUse1, m) { m.impl("running_sum", &running_sum); }

}  // namespace
