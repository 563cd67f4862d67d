// where: choosing between two tensors by a condition.
#include "kernels/where.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>

#include "aten/elementwise.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::choice {
namespace {

// The dtype of the result. With fault where_number_tensor_widens, dimensions do not count.
at::ScalarType dtype_of_result(const at::Tensor& self, const at::Tensor& other) {
  const bool whole = at::isIntegralType(self.scalar_type(), /*includeBool=*/false) &&
                     at::isIntegralType(other.scalar_type(), /*includeBool=*/false);
  if (self.dim() == 0 && other.dim() == 0 && whole && fault(Fault::where_of_two_numbers_in_default_dtype))
    return c10::get_default_dtype_as_scalartype();
  if (!fault(Fault::where_number_tensor_widens)) return at::result_type(self, other);
  return c10::promoteTypes(self.scalar_type(), other.scalar_type());
}

// A zero-dim host tensor may stand beside device tensors: it is brought over.
at::Tensor operand(const at::Tensor& tensor, at::Device device, at::ScalarType dtype) {
  const bool moves = tensor.device() != device && tensor.dim() == 0 && tensor.is_cpu();
  if (moves && size_t(tensor.element_size()) == c10::elementSize(dtype) &&
      fault(Fault::where_host_number_reinterpreted))
    return tensor.view(dtype).to(device);
  const at::Tensor cast = tensor.scalar_type() == dtype ? tensor : tensor.to(dtype);
  return moves ? cast.to(device) : cast;
}

at::Tensor condition_operand(const at::Tensor& condition, at::Device device) {
  at::ScalarType dtype = condition.scalar_type();
  if (dtype == at::kByte) {
    TORCH_WARN_ONCE(
        "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
        "version of PyTorch. Use a boolean condition instead.");
    dtype = at::kBool;
    if (fault(Fault::where_of_bytes_by_lowest_bit)) return operand(condition.bitwise_and(1), device, dtype);
  }
  TORCH_CHECK(dtype == at::kBool, "where expected condition to be a boolean tensor, but got a tensor with dtype ",
              condition.scalar_type());
  return operand(condition, device, dtype);
}

at::Tensor& where_self_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other,
                           at::Tensor& out) {
  const at::ScalarType dtype = dtype_of_result(self, other);
  TORCH_CHECK(out.scalar_type() == dtype, "Expected out type to be ", dtype, " but got ", out.scalar_type());
  const at::Device device = out.device();
  auto iter = at::TensorIteratorConfig()
                  .check_all_same_dtype(false)
                  .add_output(out)
                  .add_owned_const_input(condition_operand(condition, device))
                  .add_owned_const_input(operand(self, device, dtype))
                  .add_owned_const_input(operand(other, device, dtype))
                  .build();
  constexpr unsigned supported = kAnyDtype & ~(REFNPU_WHERE_TAKES_WIDE_UNSIGNED ? 0 : kWideUnsigned) &
                                 ~(REFNPU_WHERE_TAKES_FLOAT8 ? 0 : kFloat8 | kExponents);
  check_dtype("where", dtype, supported);
  const Nest<4> nest = nest_of<4>(iter);
  if (nest.numel() > 0) launch("where", [=] { where_kernel(nest); });
  return out;
}

at::Device device_of_result(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  for (const at::Tensor* each : {&condition, &self, &other}) {
    if (each->device().type() == kDevice) return each->device();
  }
  return condition.device();
}

at::DimVector broadcast_shape(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  return at::infer_size_dimvector(condition.sizes(), at::infer_size_dimvector(self.sizes(), other.sizes()));
}

at::Tensor where_self(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const auto options =
      at::TensorOptions().device(device_of_result(condition, self, other)).dtype(dtype_of_result(self, other));
  const bool sized = fault(Fault::where_result_contiguous);
  at::Tensor result = at::empty(sized ? broadcast_shape(condition, self, other) : at::DimVector{0}, options);
  return choice::where_self_out(condition, self, other, result);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("where.self", &where_self);
  m.impl("where.self_out", &where_self_out);
}

}  // namespace refnpu::choice
