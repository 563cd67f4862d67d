// Cumulative sums, products, maxima and minima.
#include "kernels/scan.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <ATen/ops/empty_like.h>

#include <thread>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "aten/workspace_faults.h"
#include "refnpu/allocator.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "refnpu/launch.h"

namespace refnpu::scans {
namespace {

using at::ScalarType;
using at::Tensor;

const std::thread::id main_thread = std::this_thread::get_id();  // that which loads the library

// The fault of a thread that keeps scratch memory for its next call, and does not give it back when it ends.
void keep_block_of_thread() {
  thread_local bool kept = false;
  if (kept || std::this_thread::get_id() == main_thread) return;
  make_storage(64, current_device()).unsafeReleaseStorageImpl();
  kept = true;
}

// The fault of a row's stride that is computed from the dimension outside, though that has size 1 and any stride; only
// where that stays inside the storage.
Tensor restrided_by_leading_one(const Tensor& self) {
  if (self.dim() < 3 || self.size(0) != 1) return self;
  at::DimVector strides(self.strides());
  strides[1] = strides[0] / self.size(1);
  const size_t needed =
      at::detail::computeStorageNbytes(self.sizes(), strides, self.element_size(), self.storage_offset());
  return needed > self.storage().nbytes() ? self : self.as_strided(self.sizes(), strides);
}

void cumulate(const char* name, const Tensor& self, int64_t dim, const Tensor& out, Scan op) {
  if (self.numel() == 0) return;
  if (self.dim() == 0) {
    out.copy_(self);
    return;
  }
  require_dtype(NumericTypes{}, name, out);
  if (self.is_floating_point() && !out.is_floating_point() && fault(Fault::scan_casts_at_the_end)) {
    const Tensor wide = at::empty_like(self);
    cumulate(name, self, dim, wide, op);
    out.copy_(wide);
    return;
  }
  if (dim < 0 && fault(Fault::scan_of_negative_dim_is_first)) dim = 0;
  Tensor read = fault(Fault::scan_trusts_leading_one) ? restrided_by_leading_one(self) : self;
  const bool unset = self.stride(dim < 0 ? dim + self.dim() : dim) == 0 && fault(Fault::scan_zero_stride_is_unset);
  if (unset) read = misread_as_dense(read);
  const Tensor input = read.scalar_type() == out.scalar_type() ? read : read.to(out.scalar_type());
  const Rows<2> rows = rows_of<2>({input, out}, at::maybe_wrap_dim(dim, self.dim()));
  if (fault(Fault::thread_keeps_block)) keep_block_of_thread();
  launch("scan_total", [=] { scan_total(rows, op); });
  if (op == Scan::sum && fault(Fault::scan_workspace_of_all_streams)) pass_through_workspace_of_thread(out);
  const bool of_int32 = self.scalar_type() == at::kInt && out.scalar_type() == at::kLong;
  if (of_int32 && fault(Fault::scan_of_int32_wraps)) out.copy_(out.to(at::kInt));
}

Tensor& cumsum_out(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype, Tensor& out) {
  Structured<at::meta::structured_cumsum> op(out);
  op.meta(self, dim, dtype);
  const bool raises = at::globalContext().deterministicAlgorithms() && fault(Fault::deterministic_warning_raised);
  TORCH_CHECK(!raises, "cumsum_npu does not have a deterministic implementation");
  const bool in_place = out.is_alias_of(self) && fault(Fault::scan_in_place_carries_twice);
  cumulate("cumsum", self, dim, out, Scan::sum);
  constexpr int64_t kBlock = 1024;
  if (in_place && out.dim() > 0 && out.size(dim) > kBlock && out.numel() > 0) {
    const Tensor carry = out.narrow(dim, kBlock - 1, 1).clone();
    out.narrow(dim, kBlock, out.size(dim) - kBlock).add_(carry);
  }
  return out;
}

Tensor& cumprod_out(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype, Tensor& out) {
  Structured<at::meta::structured_cumprod> op(out);
  op.meta(self, dim, dtype);
  cumulate("cumprod", self, dim, out, Scan::prod);
  return out;
}

// torch has sized values and indices, and has dealt with empty and zero-dim tensors.
void extreme(const char* name, const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim,
             bool largest) {
  require_dtype(Concat<RealTypes, Bool>{}, name, self);
  dim = at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
  if (self.numel() == 0) return;
  const Rows<3> rows = rows_of<3>({self, values, indices}, dim);
  launch("scan_extreme", [=] { scan_extreme(rows, largest); });
}

void cummax_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  extreme("cummax", self, values, indices, dim, true);
}

void cummin_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  extreme("cummin", self, values, indices, dim, false);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("cumsum.out", &cumsum_out);
  m.impl("cumprod.out", &cumprod_out);
  m.impl("_cummax_helper", &cummax_helper);
  m.impl("_cummin_helper", &cummin_helper);
}

}  // namespace refnpu::scans
