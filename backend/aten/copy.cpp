// Copies between tensors: any strides, any direction, any dtypes. For now a byte loop between equal dtypes.
#include <ATen/EmptyTensor.h>
#include <vector>

#include "aten/register.h"

namespace refnpu::copies {
namespace {

at::Tensor& copy_bytes(const at::Tensor& source, at::Tensor& target) {
  auto kind = source.is_cpu() ? npuMemcpyHostToDevice : target.is_cpu() ? npuMemcpyDeviceToHost : npuMemcpyDeviceToDevice;
  at::Tensor expanded = source.expand(target.sizes());
  std::vector<int64_t> index(target.dim(), 0);
  for (int64_t n = 0; n < target.numel(); ++n) {
    int64_t to = target.storage_offset(), from = expanded.storage_offset();
    for (int64_t d = 0; d < target.dim(); ++d) {
      to += index[d] * target.stride(d);
      from += index[d] * expanded.stride(d);
    }
    size_t size = target.itemsize();
    check(npuMemcpy(static_cast<char*>(target.storage().mutable_data()) + to * size,
                    static_cast<const char*>(expanded.storage().data()) + from * size, size, kind));
    for (int64_t d = target.dim() - 1; d >= 0 && ++index[d] == target.size(d); --d) index[d] = 0;
  }
  return target;
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool) {
  at::Tensor result = target;
  if (self.scalar_type() == target.scalar_type()) return copy_bytes(self, result);
  at::Tensor host = at::detail::empty_cpu(self.sizes(), self.scalar_type());
  copy_bytes(self, host);
  at::Tensor cast = host.to(target.scalar_type());
  if (target.is_cpu()) return result.copy_(cast);
  return copy_bytes(cast, result);
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  NATIVE("_copy_from", copy_from);
  NATIVE("_copy_from_and_resize", copy_from_and_resize);
}

}  // namespace refnpu::copies
