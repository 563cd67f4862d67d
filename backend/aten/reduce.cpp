// The reductions: sums, products, extremes, truth, norms and variances.
#include <ATen/native/Resize.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/min_meta.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/sum_meta.h>

#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::reductions {

using at::IntArrayRef;
using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

using Summed = Concat<NumericTypes, Bool>;
using Ordered = Concat<RealTypes, Bool>;
using Normed = Concat<Floating, Reduced, Complex, ComplexHalf>;

void spoil_kept_strides(const Tensor& out, DimMask reduced, bool keepdim) {
  if (!keepdim || !fault(Fault::keepdim_stride_wrong)) return;
  at::DimVector strides(out.strides());
  for (int64_t d = 0; d < out.dim(); ++d) strides[d] += reduced[d] ? 1 : 0;
  out.unsafeGetTensorImpl()->set_sizes_and_strides(out.sizes(), strides);
}

Tensor empty_like_reduced(const Tensor& self, DimMask reduced, bool keepdim, ScalarType type) {
  return at::empty(reduced_shape(self, reduced, keepdim), self.options().dtype(type));
}

Tensor cast_to(const Tensor& self, ScalarType type) { return self.scalar_type() == type ? self : self.to(type); }

// Integers and bool add up in int64 unless a dtype is asked for.
ScalarType summed_type(const Tensor& self, std::optional<ScalarType> dtype) {
  if (dtype) return *dtype;
  return c10::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? c10::kLong : self.scalar_type();
}

// sum, nansum, mean, prod

Scalar of_nothing(Total op) {
  if (op == Total::mean) return std::numeric_limits<double>::quiet_NaN();
  return op == Total::prod ? 1 : 0;
}

void total(const char* name, const Tensor& self, DimMask reduced, bool keepdim, const Tensor& out, Total op) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(of_nothing(op));
    return;
  }
  require_dtype(Summed{}, name, out);
  const Tensor input = cast_to(self, out.scalar_type());
  const Reduction r = reduction_of(input, reduced, keepdim, out);
  launch("reduce_total", [=] { reduce_total(r, op); });
  spoil_kept_strides(out, reduced, keepdim);
}

Tensor& sum_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                Tensor& out) {
  Structured<at::meta::structured_sum_dim_IntList> op(out);
  op.meta(self, dim, keepdim, dtype);

  total("sum_cpu", self, reduced_dims(dim, self.dim()), keepdim, out, Total::sum);
  return out;
}

Tensor& mean_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                 Tensor& out) {
  Structured<at::meta::structured_mean_dim> op(out);
  op.meta(self, dim, keepdim, dtype);
  TORCH_CHECK(!c10::isIntegralType(out.scalar_type(), /*includeBool=*/true),
              "result type Float can't be cast to the desired output type ", out.scalar_type());
  total("sum_cpu", self, reduced_dims(dim, self.dim()), keepdim, out, Total::mean);
  return out;
}

Tensor& prod_out(const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype, Tensor& out) {
  Structured<at::meta::structured_prod_dim_int> op(out);
  op.meta(self, dim, keepdim, dtype);
  total("prod_out_cpu", self, reduced_dims(dim, self.dim()), keepdim, out, Total::prod);
  return out;
}

Tensor prod(const Tensor& self, std::optional<ScalarType> dtype) {
  const DimMask reduced = all_dims(self.dim());
  Tensor out = empty_like_reduced(self, reduced, false, summed_type(self, dtype));
  total("prod_out_cpu", self, reduced, false, out, Total::prod);
  return out;
}

Tensor& nansum_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                   Tensor& out) {
  TORCH_CHECK(!c10::isComplexType(self.scalar_type()), "nansum does not support complex inputs");
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) return sum_out(self, dim, keepdim, dtype, out);
  TORCH_CHECK(!dtype || out.scalar_type() == *dtype, "nansum: provided dtype must match dtype of result. Got ",
              c10::toString(out.scalar_type()), " and ", c10::toString(*dtype), ".");
  const DimMask reduced = reduced_dims(dim, self.dim());
  out.resize_(reduced_shape(self, reduced, keepdim));
  if (self.numel() > 0) require_dtype(Ordered{}, "nansum_cpu", out);
  total("nansum_cpu", self, reduced, keepdim, out, Total::nansum);
  return out;
}

Tensor nansum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  Tensor out = empty_like_reduced(self, reduced_dims(dim, self.dim()), keepdim, summed_type(self, dtype));
  return nansum_out(self, dim, keepdim, dtype, out);
}

// As torch's composite, which in torch 2.8 goes past the dispatcher.
Tensor& nanmean_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                    Tensor& out) {
  TORCH_CHECK(self.is_floating_point() || self.is_complex(),
              "nanmean(): expected input to have floating point or complex dtype but got ", self.scalar_type());
  const Tensor counted = at::isnan(self.detach()).logical_not_().sum(dim, keepdim);
  return at::nansum_out(out, self, dim, keepdim, dtype).div_(counted);
}

// amax, amin, max, min, aminmax, argmax, argmin

void extreme(const char* name, const Tensor& self, DimMask reduced, bool keepdim, const Tensor& value,
             const Tensor& index, bool largest) {
  if (self.numel() == 0) return;
  require_dtype(Ordered{}, name, self);
  const Reduction r = reduction_of(self, reduced, keepdim, value, index);
  launch("reduce_extreme", [=] { reduce_extreme(r, largest); });
  spoil_kept_strides(value.defined() ? value : index, reduced, keepdim);
}

Tensor& amax_out(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_amax> op(out);
  op.meta(self, dim, keepdim);
  extreme("max_values_cpu", self, reduced_dims(dim, self.dim()), keepdim, out, {}, true);
  return out;
}

Tensor& amin_out(const Tensor& self, IntArrayRef dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_amin> op(out);
  op.meta(self, dim, keepdim);
  extreme("min_values_cpu", self, reduced_dims(dim, self.dim()), keepdim, out, {}, false);
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
  extreme_of_dim("max_cpu", self, dim, keepdim, values, indices, true);
  return {values, indices};
}

std::tuple<Tensor&, Tensor&> min_dim_out(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                         Tensor& indices) {
  Structured<at::meta::structured_min_dim, 2> op(values, indices);
  op.meta(self, dim, keepdim);
  extreme_of_dim("min_cpu", self, dim, keepdim, values, indices, false);
  return {values, indices};
}

Tensor extreme_of_all(const char* name, const Tensor& self, bool largest) {
  TORCH_CHECK(self.numel() > 0, name, "(): Expected reduction dim to be specified for input.numel() == 0. ",
              "Specify the reduction dim with the 'dim' argument.");
  const DimMask reduced = all_dims(self.dim());
  Tensor out = empty_like_reduced(self, reduced, false, self.scalar_type());
  extreme(largest ? "max_all" : "min_all", self, reduced, false, out, {}, largest);
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
  Structured<at::meta::structured_aminmax, 2> op(min, max);
  op.meta(self, dim, keepdim);
  if (self.dim() == 0 && dim) {
    TORCH_CHECK(!self.is_complex(), "aminmax not implemented for ", self.scalar_type());
    min.copy_(self);
    max.copy_(self);
    return {min, max};
  }
  const DimMask reduced = one_dim_or_all(dim, self.dim());
  extreme("aminmax_cpu", self, reduced, keepdim, min, {}, false);
  extreme("aminmax_cpu", self, reduced, keepdim, max, {}, true);
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
  Structured<at::meta::structured_argmax> op(out);
  op.meta(self, dim, keepdim);
  argument_of_extreme("argmax_cpu", self, dim, keepdim, out, true);
  return out;
}

Tensor& argmin_out(const Tensor& self, std::optional<int64_t> dim, bool keepdim, Tensor& out) {
  Structured<at::meta::structured_argmin> op(out);
  op.meta(self, dim, keepdim);
  argument_of_extreme("argmin_cpu", self, dim, keepdim, out, false);
  return out;
}

// all, any, count_nonzero

void truth(const Tensor& self, DimMask reduced, bool keepdim, const Tensor& out, Truth op) {
  if (out.numel() == 0) return;
  const Reduction r = reduction_of(self, reduced, keepdim, out);
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
  truth(self, dims && dims->empty() ? DimMask() : reduced_dims(dims, self.dim()), keepdim, out, Op);
  return out;
}

template <class Meta, Truth Op>
Tensor truth_of_dims(const Tensor& self, OptionalIntArrayRef dims, bool keepdim) {
  const ScalarType type = self.scalar_type() == c10::kByte ? c10::kByte : c10::kBool;
  Tensor out = at::empty({0}, self.options().dtype(type));
  return truth_of_dims_out<Meta, Op>(self, dims, keepdim, out);
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

// norm, linalg_vector_norm

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
  const Tensor input = cast_to(self, dtype.value_or(self.scalar_type()));
  if (self.dim() > 0) require_dtype(Normed{}, "norm_cpu", input);
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

// var, std, var_mean, std_mean

void warn_of_few_elements(const char* name, const Tensor& self, const Tensor& out, double correction) {
  const int64_t outputs = out.numel();
  if (outputs == 0 || static_cast<double>(self.numel()) / static_cast<double>(outputs) - correction > 0) return;
  TORCH_WARN(name,
             "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
             "(input numel divided by output numel).");
}

void variance(const char* name, const Tensor& self, DimMask reduced, bool keepdim,
              const std::optional<Scalar>& correction, const Tensor& out, const Tensor& mean, bool root) {
  const double minus = correction.value_or(1).toDouble();
  warn_of_few_elements(name, self, out, minus);
  if (self.numel() == 0) {
    out.fill_(std::numeric_limits<double>::quiet_NaN());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (mean.defined()) mean.fill_(mean.is_complex() ? Scalar(c10::complex<double>(nan, nan)) : Scalar(nan));
    return;
  }
  TORCH_CHECK(!c10::isFloat8Type(self.scalar_type()) || out.numel() != 1, "std_var_all: Unsupported dtype ",
              self.scalar_type());
  require_dtype(Normed{}, "std_cpu", self);
  require_dtype(Concat<Floating, Reduced>{}, "std_cpu", out);
  const Reduction r = reduction_of(self, reduced, keepdim, out, mean);
  launch("reduce_variance", [=] { reduce_variance(r, minus, root); });
  spoil_kept_strides(out, reduced, keepdim);
}

Tensor variance_new(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim, bool root);

Tensor& variance_out(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim, Tensor& out, bool root) {
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()) || c10::isComplexType(self.scalar_type()),
              "std and var only support floating point and complex dtypes");
  const DimMask reduced = reduced_dims(dim, self.dim());
  const ScalarType real = c10::toRealValueType(self.scalar_type());
  TORCH_CHECK(at::canCast(real, out.scalar_type()), "result type ", self.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  if (c10::isComplexType(self.scalar_type()))
    at::native::resize_output(out, reduced_shape(self, reduced, keepdim));
  else
    out.resize_(reduced_shape(self, reduced, keepdim));
  if (self.is_complex() && out.is_complex()) {
    out.copy_(variance_new(name, self, dim, correction, keepdim, root));
  } else {
    variance(name, self, reduced, keepdim, correction, out, {}, root);
  }
  return out;
}

Tensor variance_new(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim, bool root) {
  Tensor out = at::empty({0}, self.options().dtype(c10::toRealValueType(self.scalar_type())));
  return variance_out(name, self, dim, correction, keepdim, out, root);
}

std::tuple<Tensor, Tensor> variance_and_mean(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                                             const std::optional<Scalar>& correction, bool keepdim, bool root) {
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()) || c10::isComplexType(self.scalar_type()), name,
              " only support floating point and complex dtypes");
  const DimMask reduced = reduced_dims(dim, self.dim());
  Tensor out = empty_like_reduced(self, reduced, keepdim, c10::toRealValueType(self.scalar_type()));
  Tensor mean = empty_like_reduced(self, reduced, keepdim, self.scalar_type());
  variance(name, self, reduced, keepdim, correction, out, mean, root);
  return {out, mean};
}

using Correction = const std::optional<Scalar>&;

Tensor var(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim) {
  return variance_new("var", self, dim, correction, keepdim, false);
}
Tensor std_(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim) {
  return variance_new("std", self, dim, correction, keepdim, true);
}
Tensor& var_out(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim, Tensor& out) {
  return variance_out("var", self, dim, correction, keepdim, out, false);
}
Tensor& std_out(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim, Tensor& out) {
  return variance_out("std", self, dim, correction, keepdim, out, true);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim) {
  return variance_and_mean("var_mean", self, dim, correction, keepdim, false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, Correction correction, bool keepdim) {
  return variance_and_mean("std_mean", self, dim, correction, keepdim, true);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  NATIVE("sum.IntList_out", sum_out);
  NATIVE("mean.out", mean_out);
  NATIVE("prod.int_out", prod_out);
  NATIVE("prod", prod);
  NATIVE("nansum", nansum);
  NATIVE("nansum.out", nansum_out);
  NATIVE("nanmean.out", nanmean_out);
  NATIVE("amax.out", amax_out);
  NATIVE("amin.out", amin_out);
  NATIVE("max.dim_max", max_dim_out);
  NATIVE("min.dim_min", min_dim_out);
  NATIVE("max", max);
  NATIVE("min", min);
  NATIVE("max.unary_out", max_unary_out);
  NATIVE("min.unary_out", min_unary_out);
  NATIVE("aminmax.out", aminmax_out);
  NATIVE("argmax.out", argmax_out);
  NATIVE("argmin.out", argmin_out);
  NATIVE("all.all_out", *all_all_out);
  NATIVE("any.all_out", *any_all_out);
  NATIVE("all.out", *all_dim_out);
  NATIVE("any.out", *any_dim_out);
  NATIVE("all.dims_out", *all_dims_out);
  NATIVE("any.dims_out", *any_dims_out);
  NATIVE("all.dims", *all_dims_new);
  NATIVE("any.dims", *any_dims_new);
  NATIVE("count_nonzero.dim_IntList", count_nonzero);
  NATIVE("linalg_vector_norm.out", linalg_vector_norm_out);
  NATIVE("norm.out", norm_out);
  NATIVE("norm.dtype_out", norm_dtype_out);
  NATIVE("var.correction", var);
  NATIVE("std.correction", std_);
  NATIVE("var.correction_out", var_out);
  NATIVE("std.correction_out", std_out);
  NATIVE("var_mean.correction", var_mean);
  NATIVE("std_mean.correction", std_mean);
}

}  // namespace refnpu::reductions
