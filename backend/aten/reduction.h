// Host code that all reductions share.
#pragma once

#include <limits>

#include "aten/rows_plan.h"

namespace refnpu {

using Ordered = Concat<RealTypes, Bool>;                         // dtypes that have a largest element
using Normed = Concat<Floating, Reduced, Complex, ComplexHalf>;  // dtypes that have a norm and a variance

// A new tensor of `type` for the result of reducing `self`.
at::Tensor empty_like_reduced(const at::Tensor& self, DimMask reduced, bool keepdim, at::ScalarType type);

at::Tensor cast_to(const at::Tensor& self, at::ScalarType type);

// What fault keepdim_stride_wrong does to the result of a reduction; nothing while it is asleep.
void spoil_kept_strides(const at::Tensor& out, DimMask reduced, bool keepdim);

}  // namespace refnpu
