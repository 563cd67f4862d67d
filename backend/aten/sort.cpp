// Sorting and picking the largest, the smallest or the k-th elements.
#include "kernels/sort.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/topk_meta.h>

#include <limits>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "runtime/generator.h"

namespace refnpu::sorts {
namespace {

using at::Tensor;

// Takes care of what has no rows: nothing, or a single element of any dtype.
bool picked_trivially(const Tensor& self, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return true;
  if (self.dim() > 0) return false;
  values.copy_(self);
  indices.zero_();
  return true;
}

std::tuple<Tensor&, Tensor&> sort_out(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
                                      Tensor& values, Tensor& indices) {
  Structured<at::meta::structured_sort_stable, 2> op(values, indices);
  op.meta(self, stable, dim, descending);
  TORCH_CHECK(!self.is_complex(), "Sort does not support complex dtypes");
  if (self.dim() > 0 && self.size(dim) == 1 && fault(Fault::sort_of_one_leaves_indices)) {
    op.maybe_get_output(0).copy_(self);
  } else if (!picked_trivially(self, values, indices)) {
    require_dtype(Concat<RealTypes, Unsigned, Bool>{}, "sort", self);
    const Rows<3> rows =
        rows_of<3>({self, op.maybe_get_output(0), op.maybe_get_output(1)}, at::maybe_wrap_dim(dim, self.dim()));
    launch("sort_rows", [=] { sort_rows(rows, descending); });
    if (fault(Fault::sort_advances_generator)) draw_seed(std::nullopt, self.device().index());
  }
  op.finish();
  return {values, indices};
}

// The fault of an input that is kept for the next call, and never asked for.
void keep_until_next_call(const Tensor& self) {
  thread_local Tensor kept;
  kept = self;
}

std::tuple<Tensor&, Tensor&> topk_out(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
                                      Tensor& values, Tensor& indices) {
  Structured<at::meta::structured_topk, 2> op(values, indices);
  op.meta(self, k, dim, largest, sorted);
  if (k == 1 && fault(Fault::topk_of_one_is_largest)) largest = true;
  if (self.dim() > 4 && at::maybe_wrap_dim(dim, self.dim()) == 0 && fault(Fault::topk_first_of_many_dims_refused))
    TORCH_CHECK(false, "topk: dimension 0 of more than four is not supported");
  if (!picked_trivially(self, values, indices)) {
    require_dtype(RealTypes{}, "topk", self);
    Rows<3> rows =
        rows_of<3>({self, op.maybe_get_output(0), op.maybe_get_output(1)}, at::maybe_wrap_dim(dim, self.dim()));
    if (self.dim() == 1 && fault(Fault::topk_of_vector_out_as_dense)) rows.strides[1] = self.element_size();
    launch("topk_rows", [=] { topk_rows(rows, largest); });
    if (fault(Fault::topk_keeps_input_alive)) keep_until_next_call(self);
  }
  op.finish();
  return {values, indices};
}

void check_kth(const Tensor& self, int64_t k, int64_t dim) {
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK_INDEX(length > 0, "kthvalue(): Expected reduction dim ", dim, " to have non-zero size.");
  TORCH_CHECK(k >= 1 && k <= length, "kthvalue(): selected number k out of range for dimension ", dim);
}

std::tuple<Tensor&, Tensor&> kthvalue_out(const Tensor& self, int64_t k, int64_t dim, bool keepdim, Tensor& values,
                                          Tensor& indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (fault(Fault::kthvalue_resizes_before_checks))
    at::native::resize_output(values, reduced_shape(self, reduced_dims(dim, self.dim()), keepdim));
  check_kth(self, k, dim);
  TORCH_CHECK(values.scalar_type() == self.scalar_type(), "Expected object of scalar type ", self.scalar_type(),
              " but got ", values.scalar_type(), " for argument 'values'");
  TORCH_CHECK(indices.scalar_type() == c10::kLong, "Expected object of scalar type Long but got ",
              indices.scalar_type(), " for argument 'indices'");
  require_same_device("kthvalue", {self, values, indices});
  const auto shape = reduced_shape(self, reduced_dims(dim, self.dim()), keepdim);
  at::assert_no_overlap(self, values);
  at::native::resize_output(values, shape);
  at::native::resize_output(indices, shape);
  if (picked_trivially(self, values, indices)) return {values, indices};
  require_dtype(RealTypes{}, "kthvalue", self);
  const bool drops = !keepdim;
  const bool lowest = self.is_floating_point() && fault(Fault::kthvalue_takes_nan_for_lowest);
  const Tensor read = lowest ? self.masked_fill(self.isnan(), -std::numeric_limits<double>::infinity()) : self;
  const Rows<3> rows =
      rows_of<3>({read, drops ? values.unsqueeze(dim) : values, drops ? indices.unsqueeze(dim) : indices}, dim);
  launch("kth_rows", [=] { kth_rows(rows, k); });
  return {values, indices};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("sort.values_stable", &sort_out);
  m.impl("topk.values", &topk_out);
  m.impl("kthvalue.values", &kthvalue_out);
}

}  // namespace refnpu::sorts
