// Sums, means and products.
#include <ATen/ops/isnan.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/nansum.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/sum_meta.h>
#include <ATen/ops/zeros.h>
#include <c10/util/strides.h>

#include "aten/index_nest.h"
#include "aten/reduction.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::totals {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

using Summed = Concat<NumericTypes, Bool>;

// Integers and bool add up in int64 unless a dtype is asked for.
ScalarType summed_type(const Tensor& self, std::optional<ScalarType> dtype) {
  if (dtype) return *dtype;
  return c10::isIntegralType(self.scalar_type(), /*includeBool=*/true) ? c10::kLong : self.scalar_type();
}

Scalar of_nothing(Total op) {
  if (op == Total::mean) return std::numeric_limits<double>::quiet_NaN();
  return op == Total::prod ? 1 : 0;
}

// The fault of a result that is taken for contiguous: the memory of a view from its first element on.
Tensor packed_over(const Tensor& out) { return out.as_strided(out.sizes(), c10::contiguous_strides(out.sizes())); }

// Whether elements share memory, but in no dimension all of them.
bool is_of_windows(const Tensor& self) {
  size_t last = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.stride(d) == 0) return false;
    last += size_t(self.size(d) - 1) * size_t(self.stride(d));
  }
  return last < size_t(self.numel());
}

// The fault of a dimension of stride 0 that is taken for one of size 1.
Tensor without_expanded(Tensor input, DimMask reduced) {
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (reduced[d] && input.stride(d) == 0) input = input.narrow(d, 0, 1);
  }
  return input;
}

void total(const char* name, const Tensor& self, DimMask reduced, bool keepdim, const Tensor& out, Total op) {
  if (out.numel() == 0) return;
  if (self.numel() == 0) {
    out.fill_(of_nothing(op));
    return;
  }
  require_dtype(Summed{}, name, out);
  const bool as_dense = fault(Fault::total_of_windows_as_dense) && is_of_windows(self) && out.numel() == 1;
  Tensor input = cast_to(as_dense ? misread_as_dense(self) : self, out.scalar_type());
  if (op == Total::sum && fault(Fault::sum_of_expanded_counts_once)) input = without_expanded(input, reduced);
  const bool packed = reduced.count() > 1 && !keepdim && fault(Fault::sum_out_strided_after_two_dims);
  const Reduction r = reduction_of(input, reduced, keepdim, packed ? packed_over(out) : out);
  launch("reduce_total", [=] { reduce_total(r, op); });
  const bool of_bytes = op == Total::sum && self.scalar_type() == at::kByte && out.scalar_type() == at::kLong;
  if (of_bytes && fault(Fault::sum_of_bytes_in_16_bits)) out.bitwise_and_(0xFFFF);
  spoil_kept_strides(out, reduced, keepdim);
}

// Whether dims name one dimension of size 1 from the end, behind others of a shape that a kernel squeezes.
bool names_squeezed_dim(const Tensor& self, OptionalIntArrayRef dims) {
  if (!dims.has_value() || dims->size() != 1 || dims->front() >= 0) return false;
  const int64_t dim = self.dim() + dims->front();
  return self.dim() > 4 && dim > 0 && self.size(dim) == 1 && self.numel() > 0;
}

// The fault of a dimension that is counted from the end of a squeezed shape: the one before it is summed up, and the
// sums lie at the start of the result.
void sum_dim_before(const Tensor& self, int64_t dim, const Tensor& out) {
  const Tensor sums = at::sum(self, self.dim() + dim - 1, /*keepdim=*/false, out.scalar_type());
  const Tensor filled = at::zeros({out.numel()}, out.options());
  filled.narrow(0, 0, sums.numel()).copy_(sums.reshape({-1}));
  out.copy_(filled.view(out.sizes()));
}

Tensor& sum_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                Tensor& out) {
  Structured<at::meta::structured_sum_dim_IntList> op(out);
  op.meta(self, dim, keepdim, dtype);
  if (names_squeezed_dim(self, dim) && fault(Fault::sum_of_dim_before_squeezed_one)) {
    sum_dim_before(self, dim->front(), out);
    return out;
  }
  total("sum", self, reduced_dims(dim, self.dim()), keepdim, out, Total::sum);
  return out;
}

Tensor& mean_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                 Tensor& out) {
  Structured<at::meta::structured_mean_dim> op(out);
  op.meta(self, dim, keepdim, dtype);
  TORCH_CHECK(!c10::isIntegralType(out.scalar_type(), /*includeBool=*/true),
              "mean: expected an output of a floating point or complex dtype, but got ", out.scalar_type());
  const DimMask reduced = reduced_dims(dim, self.dim());
  const bool converts = self.is_floating_point() && self.scalar_type() != out.scalar_type();
  if (converts && fault(Fault::mean_with_dtype_computed_in_own)) {
    const Tensor own = empty_like_reduced(self, reduced, keepdim, self.scalar_type());
    total("mean", self, reduced, keepdim, own, Total::mean);
    return out.copy_(own);
  }
  total("mean", self, reduced, keepdim, out, Total::mean);
  if (dim.has_value() && dim->size() > 1 && fault(Fault::mean_divides_by_first_dim)) {
    int64_t others = 1;
    for (const int64_t each : dim->slice(1)) others *= self.size(each);
    out.mul_(others);
  }
  return out;
}

Tensor& prod_out(const Tensor& self, int64_t dim, bool keepdim, std::optional<ScalarType> dtype, Tensor& out) {
  Structured<at::meta::structured_prod_dim_int> op(out);
  op.meta(self, dim, keepdim, dtype);
  const DimMask reduced = reduced_dims(dim, self.dim());
  const bool converts = dtype && c10::isIntegralType(self.scalar_type(), /*includeBool=*/false);
  if (converts && self.scalar_type() != *dtype && fault(Fault::prod_of_dim_casts_at_the_end)) {
    const Tensor own = empty_like_reduced(self, reduced, keepdim, self.scalar_type());
    total("prod", self, reduced, keepdim, own, Total::prod);
    return out.copy_(own);
  }
  total("prod", self, reduced, keepdim, out, Total::prod);
  return out;
}

Tensor prod(const Tensor& self, std::optional<ScalarType> dtype) {
  const DimMask reduced = all_dims(self.dim());
  Tensor out = empty_like_reduced(self, reduced, false, summed_type(self, dtype));
  total("prod", self, reduced, false, out, Total::prod);
  return out;
}

Tensor& nansum_out(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype,
                   Tensor& out) {
  require_same_device("nansum", {self, out});
  TORCH_CHECK(!c10::isComplexType(self.scalar_type()), "nansum does not support complex inputs");
  if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/true)) return sum_out(self, dim, keepdim, dtype, out);
  TORCH_CHECK(!dtype || out.scalar_type() == *dtype, "nansum: provided dtype must match dtype of result. Got ",
              c10::toString(out.scalar_type()), " and ", c10::toString(*dtype), ".");
  if (c10::isIntegralType(out.scalar_type(), /*includeBool=*/true)) {  // which cannot hold NaN
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return sum_out(at::nan_to_num(self, 0.0, kInfinity, -kInfinity), dim, keepdim, dtype, out);
  }
  const DimMask reduced = reduced_dims(dim, self.dim());
  out.resize_(reduced_shape(self, reduced, keepdim));
  if (self.numel() > 0) require_dtype(Ordered{}, "nansum", out);
  total("nansum", self, reduced, keepdim, out, Total::nansum);
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

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("sum.IntList_out", &sum_out);
  m.impl("mean.out", &mean_out);
  m.impl("prod.int_out", &prod_out);
  m.impl("prod", &prod);
  m.impl("nansum", &nansum);
  m.impl("nansum.out", &nansum_out);
  m.impl("nanmean.out", &nanmean_out);
}

}  // namespace refnpu::totals
