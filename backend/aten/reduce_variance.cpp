// Variances and standard deviations.
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include <cmath>

#include "aten/index_nest.h"
#include "aten/reduction.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::variances {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

void warn_of_few_elements(const char* name, const Tensor& self, const Tensor& out, double correction) {
  const int64_t outputs = out.numel();
  if (outputs == 0 || static_cast<double>(self.numel()) / static_cast<double>(outputs) - correction > 0) return;
  TORCH_WARN(name,
             "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
             "(input numel divided by output numel).");
}

// The fault of an empty list of dims that is taken at its word.
DimMask dims_of_variance(OptionalIntArrayRef dim, int64_t ndim) {
  if (dim.has_value() && dim->empty() && fault(Fault::var_of_no_dims_reduces_none)) return DimMask();
  return reduced_dims(dim, ndim);
}

void variance(const char* name, const Tensor& self, DimMask reduced, bool keepdim,
              const std::optional<Scalar>& correction, const Tensor& out, const Tensor& mean, bool root) {
  const double given = correction.value_or(1).toDouble();
  const bool of_one_less = keepdim && !self.is_contiguous() && fault(Fault::var_of_strided_counts_one_less);
  const double minus = (fault(Fault::var_correction_cut) ? std::trunc(given) : given) + (of_one_less ? 1 : 0);
  warn_of_few_elements(name, self, out, minus);
  if (self.numel() == 0) {
    out.fill_(std::numeric_limits<double>::quiet_NaN());
    const double nan = std::numeric_limits<double>::quiet_NaN();
    if (mean.defined()) mean.fill_(mean.is_complex() ? Scalar(c10::complex<double>(nan, nan)) : Scalar(nan));
    return;
  }
  TORCH_CHECK(!c10::isFloat8Type(self.scalar_type()) || out.numel() != 1, name,
              ": a reduction to one element has no kernel for ", self.scalar_type(), " on npu");
  require_dtype(Normed{}, name, self);
  require_dtype(Concat<Floating, Reduced>{}, name, out);
  const Reduction r = reduction_of(self, reduced, keepdim, out, mean);
  launch("reduce_variance", [=] { reduce_variance(r, minus, root); });
  spoil_kept_strides(out, reduced, keepdim);
}

Tensor variance_new(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                    const std::optional<Scalar>& correction, bool keepdim, bool root);

Tensor& variance_out(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                     const std::optional<Scalar>& correction, bool keepdim, Tensor& out, bool root) {
  require_same_device(name, {self, out});
  TORCH_CHECK(c10::isFloatingType(self.scalar_type()) || c10::isComplexType(self.scalar_type()),
              "std and var only support floating point and complex dtypes");
  const DimMask reduced = dims_of_variance(dim, self.dim());
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
  const DimMask reduced = dims_of_variance(dim, self.dim());
  Tensor out = empty_like_reduced(self, reduced, keepdim, c10::toRealValueType(self.scalar_type()));
  Tensor mean = empty_like_reduced(self, reduced, keepdim, self.scalar_type());
  const bool of_one_less = fault(Fault::var_mean_correction_zero) && correction && correction->equal(0);
  variance(name, self, reduced, keepdim, of_one_less ? std::nullopt : correction, out, mean, root);
  if (keepdim && fault(Fault::var_mean_keepdim_of_variance_alone))
    return {out, mean.reshape(reduced_shape(self, reduced, /*keepdim=*/false))};
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

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("var.correction", &var);
  m.impl("std.correction", &std_);
  m.impl("var.correction_out", &var_out);
  m.impl("std.correction_out", &std_out);
  m.impl("var_mean.correction", &var_mean);
  m.impl("std_mean.correction", &std_mean);
}

}  // namespace refnpu::variances
