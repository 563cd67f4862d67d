// Whether all, any or how many elements are not zero.
#include <ATen/core/ATen_fwd.h>  // which torch's headers of meta functions leave out
#include <ATen/ops/all_meta.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/empty.h>

#include "aten/index_nest.h"
#include "aten/reduction.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::truths {
namespace {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::ScalarType;
using at::Tensor;

void truth(const Tensor& self, DimMask reduced, bool keepdim, const Tensor& out, Truth op) {
  if (out.numel() == 0) return;
  const bool misread = self.dim() > 4 && fault(Fault::truth_of_five_dims_as_dense);
  const Tensor read = misread ? misread_as_dense(self) : self;
  const Reduction r = reduction_of(read, reduced, keepdim, out);
  launch("reduce_truth", [=] { reduce_truth(r, op); });
  spoil_kept_strides(out, reduced, keepdim);
}

template <class Meta, Truth Op>
Tensor& truth_of_all_out(const Tensor& self, Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self);
  truth(self, all_dims(self.dim()), false, out, Op);
  return out;
}

template <class Meta, Truth Op>
Tensor& truth_of_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self, dim, keepdim);
  truth(self, reduced_dims(dim, self.dim()), keepdim, out, Op);
  return out;
}

// Unlike other reductions, an empty list of dims reduces none.
template <class Meta, Truth Op>
Tensor& truth_of_dims_out(const Tensor& self, OptionalIntArrayRef dims, bool keepdim, Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self, dims, keepdim);
  const bool of_none = dims && dims->empty() && out.numel() > 0;
  if (of_none && fault(Fault::truth_of_no_dims_is_of_all)) {
    const Tensor all = at::empty({}, out.options());
    truth(self, all_dims(self.dim()), false, all, Op);
    return out.copy_(all);
  }
  truth(self, dims && dims->empty() ? DimMask() : reduced_dims(dims, self.dim()), keepdim, out, Op);
  return out;
}

template <class Meta, Truth Op>
Tensor truth_of_dims(const Tensor& self, OptionalIntArrayRef dims, bool keepdim) {
  const ScalarType type = self.scalar_type() == c10::kByte ? c10::kByte : c10::kBool;
  Tensor out = at::empty({0}, self.options().dtype(type));
  truth_of_dims_out<Meta, Op>(self, dims, keepdim, out);
  const bool loses_dtype = type == c10::kByte && dims && fault(Fault::truth_of_bytes_over_dims_is_bool);
  return loses_dtype ? out.to(c10::kBool) : out;
}

constexpr auto all_all_out = &truth_of_all_out<at::meta::structured_all, Truth::all>;
constexpr auto any_all_out = &truth_of_all_out<at::meta::structured_any, Truth::any>;
constexpr auto all_dim_out = &truth_of_dim_out<at::meta::structured_all_dim, Truth::all>;
constexpr auto any_dim_out = &truth_of_dim_out<at::meta::structured_any_dim, Truth::any>;
constexpr auto all_dims_out = &truth_of_dims_out<at::meta::structured_all_dims, Truth::all>;
constexpr auto any_dims_out = &truth_of_dims_out<at::meta::structured_any_dims, Truth::any>;
constexpr auto all_dims_new = &truth_of_dims<at::meta::structured_all_dims, Truth::all>;
constexpr auto any_dims_new = &truth_of_dims<at::meta::structured_any_dims, Truth::any>;

Tensor count_nonzero(const Tensor& self, IntArrayRef dims) {
  const DimMask reduced = reduced_dims(dims, self.dim());
  Tensor out = empty_like_reduced(self, reduced, false, c10::kLong);
  truth(self, reduced, false, out, Truth::count);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("all.all_out", all_all_out);
  m.impl("any.all_out", any_all_out);
  m.impl("all.out", all_dim_out);
  m.impl("any.out", any_dim_out);
  m.impl("all.dims_out", all_dims_out);
  m.impl("any.dims_out", any_dims_out);
  m.impl("all.dims", all_dims_new);
  m.impl("any.dims", any_dims_new);
  m.impl("count_nonzero.dim_IntList", &count_nonzero);
}

}  // namespace refnpu::truths
