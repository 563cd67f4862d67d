// Triangles of matrices, their coordinates, and the trace.
#include "kernels/triangle.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/triu_meta.h>

#include <algorithm>
#include <limits>

#include "aten/plan.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "refnpu/stream.h"

namespace refnpu::triangles {
namespace {

// Where the product with a mask of ones and zeros is infinity times zero.
at::Tensor spoiled_by_mask(const at::Tensor& self, int64_t diagonal) {
  const at::Tensor kept = at::ones_like(self, self.options().dtype(at::kBool)).tril(diagonal);
  return at::isinf(self).logical_and_(kept.logical_not());
}

template <class Meta, bool upper>
at::Tensor& triangle_out(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self, diagonal);
  if (self.numel() == 0) return out;
  const bool multiplies = !upper && diagonal < 0 && self.is_floating_point() && fault(Fault::tril_multiplies_by_mask);
  const at::Tensor spoiled = multiplies ? spoiled_by_mask(self, diagonal) : at::Tensor();
  const View from = view_of(self), to = view_of(out);
  const bool in_place = out.is_same(self) && self.stride(-2) < self.stride(-1);
  if (in_place && fault(Fault::triangle_in_place_of_transposed)) {
    launch(upper ? "triu" : "tril", [=] { triangle(from, to, -diagonal, !upper); });
    return out;
  }
  launch(upper ? "triu" : "tril", [=] { triangle(from, to, diagonal, upper); });
  if (spoiled.defined()) out.masked_fill_(spoiled, std::numeric_limits<double>::quiet_NaN());
  if (fault(Fault::triangle_leaves_stream_current)) setCurrentNPUStream(getNewNPUStream(out.device().index()));
  return out;
}

constexpr auto tril_out = triangle_out<at::meta::structured_tril, false>;
constexpr auto triu_out = triangle_out<at::meta::structured_triu, true>;

// How many elements of a matrix lie on or below diagonal k. Rows grow by one element, from the first that has one, up
// to the first that is full.
int64_t elements_below(int64_t rows, int64_t columns, int64_t k) {
  k = std::clamp(k, -rows, columns);
  const int64_t first = std::clamp<int64_t>(-k, 0, rows);
  const int64_t full = std::clamp<int64_t>(columns - k - 1, first, rows);
  const int64_t shortest = std::clamp<int64_t>(first + k + 1, 0, columns);
  return (full - first) * shortest + (full - first) * (full - first - 1) / 2 + (rows - full) * columns;
}

template <bool upper>
at::Tensor triangle_indices(int64_t rows, int64_t columns, int64_t k, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device> device,
                            std::optional<bool> pin_memory) {
  TORCH_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got ", columns);
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only support layout=torch.strided, got ", *layout);
  const int64_t below = elements_below(rows, columns, upper ? std::max(k, -rows) - 1 : k);
  const int64_t count = upper ? rows * columns - below : below;
  if (fault(Fault::triangle_indices_ignore_dtype)) dtype.reset();
  at::Tensor out = at::empty({2, count}, dtype.value_or(at::kLong), layout, device, pin_memory, std::nullopt);
  const View to = view_of(out);
  launch("triangle_indices", [=] { refnpu::triangle_indices(to, rows, columns, k, upper); });
  return out;
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  const bool counts =
      at::isIntegralType(self.scalar_type(), /*includeBool=*/true) && !fault(Fault::trace_keeps_integer_dtype);
  at::Tensor out = at::empty({}, counts ? self.options().dtype(at::kLong) : self.options());
  const View from = view_of(self), to = view_of(out);
  launch("trace", [=] { refnpu::trace(from, to.dtype, to.data); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl_unchecked("tril.out", tril_out);
  m.impl_unchecked("triu.out", triu_out);
  m.impl("tril_indices", &triangle_indices<false>);
  m.impl("triu_indices", &triangle_indices<true>);
  m.impl("trace", &trace);
}

}  // namespace refnpu::triangles
