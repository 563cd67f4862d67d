// Triangles of matrices, their coordinates, and the trace.
#include "kernels/triangle.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tril_meta.h>
#include <ATen/ops/triu_meta.h>

#include "aten/plan.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/launch.h"

namespace refnpu::triangles {
namespace {

template <class Meta, bool upper>
at::Tensor& triangle_out(const at::Tensor& self, int64_t diagonal, at::Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self, diagonal);
  if (self.numel() == 0) return out;
  const View from = view_of(self), to = view_of(out);
  launch(upper ? "triu" : "tril", [=] { triangle(from, to, diagonal, upper); });
  return out;
}

constexpr auto tril_out = triangle_out<at::meta::structured_tril, false>;
constexpr auto triu_out = triangle_out<at::meta::structured_triu, true>;

// How many elements of a matrix lie on or below diagonal k.
int64_t elements_below(int64_t rows, int64_t columns, int64_t k) {
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) count += std::clamp<int64_t>(i + k + 1, 0, columns);
  return count;
}

template <bool upper>
at::Tensor triangle_indices(int64_t rows, int64_t columns, int64_t k, std::optional<at::ScalarType> dtype,
                            std::optional<at::Layout> layout, std::optional<at::Device> device,
                            std::optional<bool> pin_memory) {
  TORCH_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  TORCH_CHECK(columns >= 0, "col must be non-negative, got ", columns);
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only support layout=torch.strided, got ", *layout);
  const int64_t count =
      upper ? rows * columns - elements_below(rows, columns, k - 1) : elements_below(rows, columns, k);
  at::Tensor out = at::empty({2, count}, dtype.value_or(at::kLong), layout, device, pin_memory, std::nullopt);
  const View to = view_of(out);
  launch("triangle_indices", [=] { refnpu::triangle_indices(to, rows, columns, k, upper); });
  return out;
}

at::Tensor trace(const at::Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  const bool counts = at::isIntegralType(self.scalar_type(), /*includeBool=*/true);
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
