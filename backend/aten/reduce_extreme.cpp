// Largest and smallest elements, and where they are.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/min_meta.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <vector>

#include "aten/reduction.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::extremes {
namespace {

using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

// The fault of a plan that is found by the shape alone; only where that stays inside the storage.
Tensor as_planned_before(const Tensor& self) {
  thread_local std::map<std::vector<int64_t>, std::vector<int64_t>> plans;
  const auto& strides = plans.try_emplace(self.sizes().vec(), self.strides().vec()).first->second;
  const size_t needed =
      at::detail::computeStorageNbytes(self.sizes(), strides, self.element_size(), self.storage_offset());
  return needed > self.storage().nbytes() ? self : self.as_strided(self.sizes(), strides);
}

void extreme(const char* name, const Tensor& self, DimMask reduced, bool keepdim, const Tensor& value,
             const Tensor& index, bool largest) {
  if (self.numel() == 0) return;
  require_dtype(Ordered{}, name, self);
  const Tensor read = fault(Fault::extreme_plan_without_strides) ? as_planned_before(self) : self;
  const Reduction r = reduction_of(read, reduced, keepdim, value, index);
  launch("reduce_extreme", [=] { reduce_extreme(r, largest); });
  spoil_kept_strides(value.defined() ? value : index, reduced, keepdim);
}

Tensor& amax_out(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_amax> op(out);
  op.meta(self, dim, keepdim);
  extreme("amax", self, reduced_dims(dim, self.dim()), keepdim, out, {}, true);
  return out;
}

Tensor& amin_out(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_amin> op(out);
  op.meta(self, dim, keepdim);
  extreme("amin", self, reduced_dims(dim, self.dim()), keepdim, out, {}, false);
  return out;
}

// A single element, of any dtype, is its own extreme.
void extreme_of_dim(const char* name, const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                    const Tensor& indices, bool largest) {
  if (self.dim() == 0) {
    values.copy_(self);
    indices.zero_();
    return;
  }
  extreme(name, self, reduced_dims(dim, self.dim()), keepdim, values, indices, largest);
}

std::tuple<Tensor&, Tensor&> max_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                         Tensor& indices) {
  Structured<at::meta::structured_max_dim, 2> op(values, indices);
  op.meta(self, dim, keepdim);
  extreme_of_dim("max", self, dim, keepdim, values, indices, true);
  return {values, indices};
}

std::tuple<Tensor&, Tensor&> min_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                         Tensor& indices) {
  Structured<at::meta::structured_min_dim, 2> op(values, indices);
  op.meta(self, dim, keepdim);
  extreme_of_dim("min", self, dim, keepdim, values, indices, false);
  return {values, indices};
}

Tensor extreme_of_all(const char* name, const Tensor& self, bool largest) {
  if (self.numel() == 0 && fault(Fault::extreme_of_nothing_is_zero)) return at::zeros({}, self.options());
  TORCH_CHECK(self.numel() > 0, name, "(): Expected reduction dim to be specified for input.numel() == 0. ",
              "Specify the reduction dim with the 'dim' argument.");
  const DimMask reduced = all_dims(self.dim());
  Tensor out = empty_like_reduced(self, reduced, false, self.scalar_type());
  extreme(name, self, reduced, false, out, {}, largest);
  return out;
}

// What every other value displaces: torch writes it into the output of an empty tensor.
Scalar least_extreme(ScalarType type, bool largest) {
  if (type == c10::kBool) return !largest;
  if (!c10::isIntegralType(type, /*includeBool=*/false))
    return (largest ? -1 : 1) * std::numeric_limits<double>::infinity();
  return dispatch<Integral>(to_dtype(type), "least_extreme", [&]<class T>() {
    return Scalar(static_cast<int64_t>(largest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max()));
  });
}

Tensor& extreme_of_all_out(const char* name, const Tensor& self, bool largest, Tensor& out) {
  TORCH_CHECK(self.device() == out.device(), "Expected out tensor to be on the device of the input, ", self.device(),
              ", but got ", out.device(), " instead");
  TORCH_CHECK(at::canCast(self.scalar_type(), out.scalar_type()), "Expected out tensor to have dtype ", self.dtype(),
              ", but got ", out.dtype(), " instead");
  at::native::resize_output(out, {});
  if (self.numel() == 0) return out.fill_(least_extreme(self.scalar_type(), largest));
  out.copy_(extreme_of_all(name, self, largest));
  return out;
}

Tensor max(const Tensor& self) { return extreme_of_all("max", self, true); }
Tensor min(const Tensor& self) { return extreme_of_all("min", self, false); }
Tensor& max_unary_out(const Tensor& self, Tensor& out) { return extreme_of_all_out("max", self, true, out); }
Tensor& min_unary_out(const Tensor& self, Tensor& out) { return extreme_of_all_out("min", self, false, out); }

DimMask one_dim_or_all(std::optional<int64_t> dim, int64_t ndim) {
  return dim ? reduced_dims(*dim, ndim) : all_dims(ndim);
}

std::tuple<Tensor&, Tensor&> aminmax_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& min,
                                         Tensor& max) {
  if (fault(Fault::aminmax_ignores_keepdim)) keepdim = false;
  Structured<at::meta::structured_aminmax, 2> op(min, max);
  op.meta(self, dim, keepdim);
  if (self.dim() == 0 && dim) {
    TORCH_CHECK(!self.is_complex(), "aminmax: expected a real dtype, but got ", self.scalar_type());
    min.copy_(self);
    max.copy_(self);
    return {min, max};
  }
  const DimMask reduced = one_dim_or_all(dim, self.dim());
  extreme("aminmax", self, reduced, keepdim, min, {}, false);
  extreme("aminmax", self, reduced, keepdim, max, {}, true);
  return {min, max};
}

void argument_of_extreme(const char* name, const Tensor& self, std::optional<int64_t> dim, bool keepdim,
                         const Tensor& out, bool largest) {
  if (dim && self.dim() > 0 && self.size(*dim) == 1) {
    out.zero_();
    return;
  }
  if (self.numel() > 0) require_dtype(RealTypes{}, name, self);
  extreme(name, self, one_dim_or_all(dim, self.dim()), keepdim, {}, out, largest);
}

Tensor& argmax_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
  if (!dim && fault(Fault::argmax_of_all_loses_keepdim)) keepdim = false;
  Structured<at::meta::structured_argmax> op(out);
  op.meta(self, dim, keepdim);
  argument_of_extreme("argmax", self, dim, keepdim, out, true);
  return out;
}

Tensor& argmin_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
  if (!dim && fault(Fault::argmax_of_all_loses_keepdim)) keepdim = false;
  Structured<at::meta::structured_argmin> op(out);
  op.meta(self, dim, keepdim);
  argument_of_extreme("argmin", self, dim, keepdim, out, false);
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("amax.out", &amax_out);
  m.impl("amin.out", &amin_out);
  m.impl("max.dim_max", &max_dim_out);
  m.impl("min.dim_min", &min_dim_out);
  m.impl("max", &max);
  m.impl("min", &min);
  m.impl("max.unary_out", &max_unary_out);
  m.impl("min.unary_out", &min_unary_out);
  m.impl("aminmax.out", &aminmax_out);
  m.impl("argmax.out", &argmax_out);
  m.impl("argmin.out", &argmin_out);
}

}  // namespace refnpu::extremes
