// Comparisons and logical ops.
#include "kernels/compare.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/eq_meta.h>
#include <ATen/ops/ge_meta.h>
#include <ATen/ops/gt_meta.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/le_meta.h>
#include <ATen/ops/lt_meta.h>
#include <ATen/ops/ne_meta.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>

#include "aten/elementwise.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "runtime/version.h"

namespace refnpu::compare {
namespace {

constexpr unsigned kOrdered = kBool | kIntegers | kFloats;

// The row gives bool: an output of another dtype holds the cast of it.
void run(const char* name, at::TensorIteratorBase& iter, Compare op, unsigned supported) {
  check_dtype(name, iter.common_dtype(), supported);
  DType common = to_dtype(iter.common_dtype());
  const bool mixed = is_floating_dtype(common) && at::isIntegralType(iter.dtype(1), /*includeBool=*/false);
  if (mixed && fault(Fault::comparison_in_first_dtype)) common = to_dtype(iter.dtype(1));
  launch_pointwise(iter,
                   {.op = name, .common = common, .row = compare_row(op, compute_dtype(common)), .predicate = true});
}

// The real or the imaginary parts, in bfloat16.
at::Tensor parts(const at::Tensor& tensor, bool imaginary) {
  if (tensor.is_complex()) return (imaginary ? at::imag(tensor) : at::real(tensor)).to(at::kBFloat16);
  return imaginary ? at::zeros({}, tensor.options().dtype(at::kBFloat16)) : tensor.to(at::kBFloat16);
}

// Whether numbers are equal as pairs of bfloat16, found by comparing their parts.
at::Tensor equal_in_parts(const at::Tensor& self, const at::Tensor& other) {
  return at::eq(parts(self, false), parts(other, false)).logical_and_(at::eq(parts(self, true), parts(other, true)));
}

template <Compare Op, class Meta>
void run(const char* name, Meta& op, const at::Tensor& self, const at::Tensor& other, unsigned supported) {
  constexpr bool in_parts = Op == Compare::eq || Op == Compare::ne;
  if (!in_parts || !is_pair_of_bfloat16(op.common_dtype())) {
    run(name, op, Op, supported);
  } else {
    const at::Tensor equal = equal_in_parts(self, other);
    op.maybe_get_output(0).copy_(Op == Compare::eq ? equal : equal.logical_not());
  }
  op.finish();
}

#define REFNPU_COMPARISONS(X) \
  X(eq, kAnyDtype) X(ne, kAnyDtype) X(lt, kOrdered) X(le, kOrdered) X(gt, kOrdered) X(ge, kOrdered)

#define REFNPU_DEFINE(name, supported)                                                              \
  at::Tensor& name##_tensor_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) { \
    Structured<at::meta::structured_##name##_Tensor> op(out);                                       \
    op.meta(self, other);                                                                           \
    run<Compare::name>(#name, op, self, other, supported);                                          \
    return out;                                                                                     \
  }                                                                                                 \
  at::Tensor& name##_scalar_out(const at::Tensor& self, const at::Scalar& other, at::Tensor& out) { \
    Structured<at::meta::structured_##name##_Scalar> op(out);                                       \
    op.meta(self, other);                                                                           \
    run<Compare::name>(#name, op, self, c10::scalar_to_tensor(other), supported);                   \
    return out;                                                                                     \
  }
REFNPU_COMPARISONS(REFNPU_DEFINE)
#undef REFNPU_DEFINE

template <Compare Op>
at::Tensor& logical_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  constexpr const char* name = Op == Compare::logical_and  ? "logical_and"
                               : Op == Compare::logical_or ? "logical_or"
                                                           : "logical_xor";
  auto iter = at::TensorIterator::comparison_op(out, self, other);
  run(name, iter, Op, kOrdered | kComplex);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
#define REFNPU_REGISTER(op, supported)         \
  m.impl(#op ".Tensor_out", &op##_tensor_out); \
  m.impl(#op ".Scalar_out", &op##_scalar_out);
  REFNPU_COMPARISONS(REFNPU_REGISTER)
#undef REFNPU_REGISTER
  m.impl("logical_and.out", &logical_out<Compare::logical_and>);
  m.impl("logical_or.out", &logical_out<Compare::logical_or>);
  m.impl("logical_xor.out", &logical_out<Compare::logical_xor>);
}

}  // namespace refnpu::compare
