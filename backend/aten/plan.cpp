// Translates tensors and iterators into the plain data that kernels take.
#include "aten/plan.h"

#include <c10/core/Storage.h>

#include <cstring>

namespace refnpu {

bool is_device_dtype(c10::ScalarType type) {
  switch (static_cast<DType>(type)) {
#define REFNPU_IS_DTYPE(d, T) case DType::d:
    REFNPU_FOR_EACH_DTYPE(REFNPU_IS_DTYPE)
#undef REFNPU_IS_DTYPE
    return true;
  }
  return false;
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
  dispatch_all(dtype, "immediate_of", [&]<class T>() {
    T element;
    if (value.isComplex()) {
      const auto z = value.toComplexDouble();
      element = convert<T>(complex128(z.real(), z.imag()));
    } else if (value.isFloatingPoint()) {
      element = convert<T>(value.toDouble());
    } else if (value.isBoolean()) {
      element = convert<T>(value.toBool());
    } else if (value.type() == c10::ScalarType::UInt64) {
      element = convert<T>(value.toUInt64());
    } else {
      element = convert<T>(value.toLong());
    }
    std::memcpy(result.bytes.data(), &element, sizeof(T));
  });
  return result;
}

namespace detail {

bool operand_is_host(const at::TensorIteratorBase& iter, int operand) { return iter.device(operand).is_cpu(); }

Immediate read_host_operand(const at::TensorIteratorBase& iter, int operand) {
  Immediate result;
  std::memcpy(result.bytes.data(), iter.data_ptr(operand), iter.element_size(operand));
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
