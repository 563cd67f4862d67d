// How host code describes tensors to kernels: dtypes, views, and the nest that a TensorIterator has worked out.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include "kernels/view.h"

namespace refnpu {

static_assert(int(c10::ScalarType::Byte) == int(DType::u8) && int(c10::ScalarType::Char) == int(DType::i8) &&
              int(c10::ScalarType::Short) == int(DType::i16) && int(c10::ScalarType::Int) == int(DType::i32) &&
              int(c10::ScalarType::Long) == int(DType::i64) && int(c10::ScalarType::UInt16) == int(DType::u16) &&
              int(c10::ScalarType::UInt32) == int(DType::u32) && int(c10::ScalarType::UInt64) == int(DType::u64));
static_assert(int(c10::ScalarType::Half) == int(DType::f16) && int(c10::ScalarType::Float) == int(DType::f32) &&
              int(c10::ScalarType::Double) == int(DType::f64) && int(c10::ScalarType::BFloat16) == int(DType::bf16) &&
              int(c10::ScalarType::ComplexHalf) == int(DType::c32) &&
              int(c10::ScalarType::ComplexFloat) == int(DType::c64) &&
              int(c10::ScalarType::ComplexDouble) == int(DType::c128) && int(c10::ScalarType::Bool) == int(DType::b8));
static_assert(int(c10::ScalarType::Float8_e5m2) == int(DType::f8_e5m2) &&
              int(c10::ScalarType::Float8_e4m3fn) == int(DType::f8_e4m3fn) &&
              int(c10::ScalarType::Float8_e5m2fnuz) == int(DType::f8_e5m2fnuz) &&
              int(c10::ScalarType::Float8_e4m3fnuz) == int(DType::f8_e4m3fnuz));

// True for the dtypes that device memory can hold elements of (not quantized, not packed bits).
bool is_device_dtype(c10::ScalarType type);

// Throws what torch throws for a dtype that an op has no kernel for, unless there is one. `op` is the name of the op.
void check_has_kernel(bool has_kernel, const char* op, c10::ScalarType type);

// Throws NotImplementedError, as torch does for a dtype an op has no kernel for, when the device does not know `type`.
DType to_dtype(c10::ScalarType type);
inline c10::ScalarType to_scalar_type(DType dtype) { return static_cast<c10::ScalarType>(dtype); }

// The tensor as it lies: sizes and byte strides of the view, no bits (conj, neg) applied.
View view_of(const at::Tensor& tensor);

// One value of `dtype`, to be carried along with a launch. Throws when it overflows, as c10::Scalar::to does.
Immediate immediate_of(const c10::Scalar& value, DType dtype);

namespace detail {
bool operand_is_host(const at::TensorIteratorBase& iter, int operand);
Immediate read_host_operand(const at::TensorIteratorBase& iter, int operand);
void check_nest(const at::TensorIteratorBase& iter, int operands);
}  // namespace detail

// The operands of a built iterator, outputs first. Zero-dim host tensors among the inputs (which TensorIterator lets
// pass beside device tensors) become immediates. The nest is valid while the iterator's tensors live.
template <int N>
Nest<N> nest_of(const at::TensorIteratorBase& iter) {
  detail::check_nest(iter, N);
  Nest<N> nest;
  nest.ndim = iter.ndim();
  for (int d = 0; d < nest.ndim; ++d) nest.sizes[d] = iter.shape()[d];
  for (int k = 0; k < N; ++k) {
    nest.dtypes[k] = to_dtype(iter.dtype(k));
    if (detail::operand_is_host(iter, k)) {
      nest.immediates[k] = detail::read_host_operand(iter, k);
      continue;
    }
    nest.data[k] = static_cast<char*>(iter.data_ptr(k));
    const auto strides = iter.strides(k);
    for (int d = 0; d < nest.ndim; ++d) nest.strides[k][d] = strides[d];
  }
  return nest;
}

}  // namespace refnpu
