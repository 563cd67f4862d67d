// Selecting elements by a condition: masked_select, masked_scatter_, nonzero.
#include "kernels/masked_select.h"

#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nonzero.h>

#include <utility>
#include <vector>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::selecting {
namespace {

// What fault scratch_grows does: one block is kept, so that only its bytes tell.
void grow_scratch(const at::Tensor& self) {
  static auto* scratch = new at::Tensor;
  *scratch = at::empty({scratch->defined() ? scratch->numel() + 64 : 64}, self.options().dtype(at::kByte));
}

// The fault of a block that is not given back on one path.
void keep_block(const at::Tensor& self) {
  c10::Storage kept = at::empty({16}, self.options()).storage();
  kept.unsafeReleaseStorageImpl();
}

// How many elements are not zero. Waits for the device.
int64_t count(const at::Tensor& self) {
  const at::Tensor cells = make_cells(self, 1);
  int64_t* cell = cells.mutable_data_ptr<int64_t>();
  const View view = view_of(self);
  if (fault(Fault::scratch_grows)) grow_scratch(self);
  launch("count_nonzero", [=] { count_nonzero(view, cell); });
  return read_cells(cells)[0];
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  require_same_device("masked_select", {self, mask, out});
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const auto [expanded_mask, expanded_self] = at::expand_outplace(mask, self);
  const at::Tensor chosen =
      fault(Fault::masked_select_mask_not_broadcast) ? misread_as_dense(*expanded_mask) : *expanded_mask;
  const int64_t selected = count(chosen);
  const bool fits = out.dim() == 1 && out.numel() > selected && fault(Fault::masked_select_keeps_larger_out);
  if (!fits) at::native::resize_output(out, {selected});
  if (selected == 0 && fault(Fault::masked_select_leaks_when_empty)) keep_block(self);
  if (selected == 0) return out;
  View from = view_of(*expanded_self), by = view_of(chosen);
  const View to = view_of(out);
  if (expanded_self->is_non_overlapping_and_dense() && expanded_self->strides() == chosen.strides() &&
      fault(Fault::masked_select_in_memory_order)) {
    from = view_of(misread_as_dense(*expanded_self));
    by = view_of(misread_as_dense(chosen));
  }
  launch("masked_select", [=] { masked_select(from, by, to); });
  return out;
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor out = at::empty({0}, self.options());
  masked_select_out(self, mask, out);
  const bool on_host = out.numel() == 0 && fault(Fault::masked_select_of_nothing_on_host);
  return on_host ? at::empty({0}, self.scalar_type()) : out;
}

// The fault of a dense source that is found by its address and shape.
at::Tensor read_before(const at::Tensor& source) {
  thread_local at::Tensor read;
  thread_local std::pair<const void*, std::vector<int64_t>> key;
  std::pair<const void*, std::vector<int64_t>> wanted{source.const_data_ptr(), source.sizes().vec()};
  if (!read.defined() || key != wanted || read.scalar_type() != source.scalar_type()) {
    read = source.clone(at::MemoryFormat::Contiguous);
    key = std::move(wanted);
  }
  return read;
}

// The fault of a source that starts anew where it is too short.
at::Tensor at_least(int64_t wanted, const at::Tensor& values) {
  if (values.numel() == 0 || values.numel() >= wanted) return values;
  return values.view(-1).repeat({(wanted + values.numel() - 1) / values.numel()});
}

// The fault of a source that starts anew in each part of a mask that is broadcast over the first dimension.
at::Tensor& scatter_each_part(at::Tensor& self, const at::Tensor& mask, const char* from) {
  for (int64_t i = 0; i < self.size(0); ++i) {
    const View to = view_of(self.select(0, i)), by = view_of(mask.select(0, i));
    launch("masked_scatter_", [=] { refnpu::masked_scatter(to, by, from); });
  }
  return self;
}

at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  require_same_device("masked_scatter_", {self, mask, source});
  const c10::MaybeOwned<at::Tensor> expanded = at::expand_inplace(self, mask, "masked_scatter_");
  at::Tensor values = fault(Fault::masked_scatter_source_cached) ? read_before(source) : source.contiguous();
  if (fault(Fault::masked_scatter_repeats_short_source)) values = at_least(count(*expanded), values);
  TORCH_CHECK(count(*expanded) <= values.numel(),
              "masked_scatter: expected the number of elements of source to be at least the number of ones in mask");
  const View to = view_of(self), by = view_of(*expanded);
  const char* from = static_cast<const char*>(values.const_data_ptr());
  if (fault(Fault::source_freed_early)) values.reset();
  const bool repeats = expanded->dim() > 1 && expanded->stride(0) == 0 && expanded->size(0) > 1;
  if (repeats && fault(Fault::masked_scatter_source_restarts)) return scatter_each_part(self, *expanded, from);
  launch("masked_scatter_", [=] { refnpu::masked_scatter(to, by, from); });
  return self;
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero: Expected out tensor to have scalar type Long but got ",
              out.scalar_type());
  require_same_device("nonzero", {self, out});
  at::assert_no_overlap(out, self);
  if (self.dim() == 0 && fault(Fault::nonzero_of_number_has_column)) return nonzero_out(self.view({1}), out);
  if (self.is_floating_point() && fault(Fault::nonzero_leaves_out_nan))
    return selecting::nonzero_out(self.gt(0).logical_or_(self.lt(0)), out);
  const int64_t found = count(self);
  // Column after column, unless the caller's output had that size already.
  const bool row_major = fault(Fault::nonzero_row_major);
  const bool resized = at::native::resize_output(out, {found, self.dim()});
  if (resized && !row_major) out.as_strided_({found, self.dim()}, {1, found});
  if (out.numel() == 0) return out;
  const bool is_transposed = self.dim() == 2 && !self.is_contiguous() && self.t().is_contiguous();
  if (is_transposed && self.numel() > 1024 && fault(Fault::nonzero_in_memory_order))
    return out.copy_(at::nonzero(self.t()).flip(1));
  const View from = view_of(self);
  View to = view_of(out);
  if (!resized && out.is_contiguous() && fault(Fault::nonzero_out_written_by_columns)) {
    to.strides[0] = out.element_size();
    to.strides[1] = found * out.element_size();
  }
  launch("nonzero", [=] { refnpu::nonzero(from, to); });
  return out;
}

at::Tensor nonzero(const at::Tensor& self) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  if (fault(Fault::nonzero_in_worst_case_block)) out.resize_({self.numel(), self.dim()}).resize_({0});
  return nonzero_out(self, out);
}

at::Tensor& nonzero_static_out(const at::Tensor& self, int64_t size, int64_t fill_value, at::Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero_static: Expected out tensor to have scalar type Long but got ",
              out.scalar_type());
  require_same_device("nonzero_static", {self, out});
  at::native::resize_output(out, {size, self.dim()});
  if (out.numel() == 0) return out;
  out.fill_(fault(Fault::nonzero_static_fills_minus_one) ? -1 : fill_value);
  const View from = view_of(self), to = view_of(out);
  launch("nonzero", [=] { refnpu::nonzero(from, to); });
  return out;
}

at::Tensor nonzero_static(const at::Tensor& self, int64_t size, int64_t fill_value) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return nonzero_static_out(self, size, fill_value, out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("masked_select", &masked_select);
  m.impl("masked_select.out", &masked_select_out);
  m.impl("masked_scatter_", &masked_scatter_);
  m.impl("nonzero", &nonzero);
  m.impl("nonzero.out", &nonzero_out);
  m.impl("nonzero_static", &nonzero_static);
  m.impl("nonzero_static.out", &nonzero_static_out);
}

}  // namespace refnpu::selecting
