// Translates tensors and iterators into the plain data that kernels take.
#include "aten/plan.h"

#include <c10/core/Storage.h>

#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "refnpu/fault.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

// The device overflows float8_e4m3fn as this torch does.
const bool kSaturationSet = [] {
  float8_e4m3fn_saturates = !std::isnan(static_cast<float>(c10::Float8_e4m3fn(1e6f)));
  return true;
}();

// The fault of tensors on the host whose number is kept with them.
Immediate read_before(const at::TensorBase& tensor, const Immediate& number) {
  thread_local std::map<std::pair<const void*, at::ScalarType>, Immediate> kept;
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->is_wrapped_number() ? number : kept.try_emplace({impl, tensor.scalar_type()}, number).first->second;
}

}  // namespace

bool is_device_dtype(c10::ScalarType type) {
  switch (static_cast<DType>(type)) {
#define REFNPU_IS_DTYPE(d, T) case DType::d:
    REFNPU_FOR_EACH_DTYPE(REFNPU_IS_DTYPE)
#undef REFNPU_IS_DTYPE
    return true;
  }
  return false;
}

void check_has_kernel(bool has_kernel, const char* op, c10::ScalarType type) {
  REFNPU_CHECK_DTYPE(has_kernel, '"', op, "\" not implemented for '", c10::toString(type), "' on npu");
}

DType to_dtype(c10::ScalarType type) {
  TORCH_CHECK_NOT_IMPLEMENTED(is_device_dtype(type), "refnpu has no kernels for dtype '", c10::toString(type),
                              "': move the tensor to the CPU first");
  return static_cast<DType>(type);
}

View view_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() <= kMaxDims, "refnpu kernels take tensors of at most ", kMaxDims, " dimensions, got ",
              tensor.dim());
  View view;
  view.dtype = to_dtype(tensor.scalar_type());
  view.data = static_cast<char*>(const_cast<void*>(tensor.const_data_ptr()));
  view.ndim = static_cast<int>(tensor.dim());
  const int64_t item = size_of(view.dtype);
  for (int d = 0; d < view.ndim; ++d) {
    view.sizes[d] = tensor.size(d);
    view.strides[d] = tensor.stride(d) * item;
  }
  return view;
}

Immediate immediate_of(const c10::Scalar& value, DType dtype) {
  Immediate result;
  const auto keep = [&](auto element) { std::memcpy(result.bytes.data(), &element, sizeof(element)); };
  switch (to_scalar_type(dtype)) {  // c10::Scalar's own conversions: they throw on overflow, in torch's words
#define REFNPU_KEEP(T, name)  \
  case c10::ScalarType::name: \
    keep(value.to<T>());      \
    return result;
    AT_FORALL_SCALAR_TYPES_WITH_COMPLEX(REFNPU_KEEP)
    REFNPU_KEEP(uint16_t, UInt16)
    REFNPU_KEEP(uint32_t, UInt32)
    REFNPU_KEEP(uint64_t, UInt64)
#undef REFNPU_KEEP
    default:
      throw_unsupported("immediate_of", dtype);
  }
}

namespace detail {

bool operand_is_host(const at::TensorIteratorBase& iter, int operand) { return iter.device(operand).is_cpu(); }

Immediate read_host_operand(const at::TensorIteratorBase& iter, int operand) {
  Immediate result;
  std::memcpy(result.bytes.data(), iter.data_ptr(operand), iter.element_size(operand));
  if (fault(Fault::host_number_read_from_start)) {
    const at::TensorBase& tensor = iter.tensor_base(operand);
    std::memcpy(result.bytes.data(), tensor.storage().data(), iter.element_size(operand));
  }
  if (fault(Fault::host_number_read_once)) return read_before(iter.tensor_base(operand), result);
  if (iter.dtype(operand) == c10::kDouble && fault(Fault::host_scalar_in_float)) {
    const double cut = static_cast<float>(*static_cast<const double*>(iter.data_ptr(operand)));
    std::memcpy(result.bytes.data(), &cut, sizeof(cut));
  }
  if (iter.dtype(operand) == c10::kLong && fault(Fault::host_scalar_in_32_bits)) {
    const int64_t cut = *static_cast<const int32_t*>(iter.data_ptr(operand));
    std::memcpy(result.bytes.data(), &cut, sizeof(cut));
  }
  return result;
}

void check_nest(const at::TensorIteratorBase& iter, int operands) {
  TORCH_INTERNAL_ASSERT(iter.ntensors() == operands, "a nest of ", operands, " operands was asked of an iterator with ",
                        iter.ntensors());
  TORCH_CHECK(iter.ndim() <= kMaxDims, "refnpu kernels iterate over at most ", kMaxDims, " dimensions, got ",
              iter.ndim(), " that cannot be merged");
}

}  // namespace detail
}  // namespace refnpu
