// Vector norms.
#include <ATen/core/ATen_fwd.h>  // which torch's headers of meta functions leave out
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/real.h>

#include <cmath>
#include <set>
#include <vector>

#include "aten/reduction.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::vector_norms {
namespace {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// The fault of a plan that is looked up by the shape alone: whether the norm over all was asked for with this shape.
bool reduces_all_as_before(const Tensor& self, OptionalIntArrayRef dim) {
  thread_local std::set<std::vector<int64_t>> of_all;
  if (dim && dim->empty()) of_all.insert(self.sizes().vec());
  return dim && !dim->empty() && of_all.count(self.sizes().vec()) > 0;
}

void norm(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
          const Tensor& out) {
  if (out.numel() == 0) return;
  const double p = ord.toDouble();
  if (self.numel() == 0) {
    if (p < 0)
      out.fill_(std::numeric_limits<double>::infinity());
    else
      out.zero_();
    return;
  }
  if (fault(Fault::norm_of_all_kept_by_shape) && reduces_all_as_before(self, dim)) {
    const Tensor of_all = empty_like_reduced(self, all_dims(self.dim()), false, out.scalar_type());
    norm(self, ord, std::nullopt, false, dtype, of_all);
    Tensor target = out;
    target.copy_(of_all);
    return;
  }
  if (self.is_complex() && std::isinf(p) && fault(Fault::infinity_norm_of_complex_by_parts)) {
    const Tensor larger = at::real(self).abs().maximum(at::imag(self).abs());
    return norm(larger.to(out.scalar_type()), ord, dim, keepdim, std::nullopt, out);
  }
  if (p == 0 && fault(Fault::norm_of_order_zero_counts_zeros)) {
    if (out.numel() > 0) out.fill_(self.numel() / out.numel());
    return;
  }
  const Tensor input = cast_to(self, dtype.value_or(self.scalar_type()));
  if (self.dim() > 0) require_dtype(Normed{}, "linalg_vector_norm", input);
  const DimMask reduced = reduced_dims(dim, self.dim());
  const Reduction r = reduction_of(input, reduced, keepdim, out);
  launch("reduce_norm", [=] { reduce_norm(r, p); });
  spoil_kept_strides(out, reduced, keepdim);
}

Tensor& linalg_vector_norm_out(const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool keepdim,
                               std::optional<ScalarType> dtype, Tensor& out) {
  Structured<at::meta::structured_linalg_vector_norm> op(out);
  op.meta(self, ord, dim, keepdim, dtype);
  norm(self, ord, dim, keepdim, dtype, out);
  return out;
}

Tensor& norm_out(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_norm_ScalarOpt_dim> op(out);
  const Scalar ord = p.value_or(2.0);
  op.meta(self, p ? at::OptionalScalarRef(*p) : at::OptionalScalarRef(), dim, keepdim);
  return linalg_vector_norm_out(self, ord, dim, keepdim, std::nullopt, out);
}

Tensor& norm_dtype_out(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
                       ScalarType dtype, Tensor& out) {
  Structured<at::meta::structured_norm_ScalarOpt_dim_dtype> op(out);
  const Scalar ord = p.value_or(2.0);
  op.meta(self, p ? at::OptionalScalarRef(*p) : at::OptionalScalarRef(), dim, keepdim, dtype);
  return linalg_vector_norm_out(self, ord, dim, keepdim, dtype, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("linalg_vector_norm.out", &linalg_vector_norm_out);
  m.impl("norm.out", &norm_out);
  m.impl("norm.dtype_out", &norm_dtype_out);
}

}  // namespace refnpu::vector_norms
