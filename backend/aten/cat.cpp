// Joining and rearranging whole tensors: cat, flip, roll, repeat_interleave.
#include "kernels/cat.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/TypeProperties.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::joining {
namespace {

// The fault of a table of eight inputs that is filled once.
const at::Tensor& one_of_eight(const at::MaterializedITensorListRef& inputs, size_t k) {
  const at::Tensor &input = inputs[k], &other = inputs[k % 8];
  return other.sizes() == input.sizes() && other.scalar_type() == input.scalar_type() ? other : input;
}

// An empty vector may be joined with anything, and adds nothing.
bool is_skipped(const at::Tensor& input) { return input.dim() == 1 && input.size(0) == 0; }

void copy_into(const at::Tensor& slice, const at::Tensor& input) {
  const bool reinterprets = input.element_size() == slice.element_size() && fault(Fault::cat_reinterprets_other_dtype);
  if (input.scalar_type() != slice.scalar_type() && !reinterprets) {
    slice.copy_(input);
    return;
  }
  const at::Tensor source = fault(Fault::cat_ignores_input_strides) ? misread_as_dense(input) : input;
  View from = view_of(source), to = view_of(slice);
  if (from.ndim == 1 && from.sizes[0] > 1024 && size_of(from.dtype) == 1 && fault(Fault::cat_bytes_aligned_down))
    from.sizes[0] = to.sizes[0] = from.sizes[0] / 8 * 8;
  launch("cat", [=] { move_elements(from, to); });
}

// The fault of a table of eight inputs, which are copied when it is full or when the last input has been entered: an
// empty one is not. Returns how many inputs that are not empty are copied.
int64_t copied_by_tables(const at::MaterializedITensorListRef& inputs) {
  const auto filled = [](const at::Tensor& input) { return input.numel() > 0; };
  const int64_t count = std::count_if(inputs.begin(), inputs.end(), filled);
  return inputs.empty() || filled(inputs.back()) ? count : count / 8 * 8;
}

// The fault of an output that is taken for contiguous: its memory from the first element on.
at::Tensor packed_over(const at::Tensor& out) {
  return out.as_strided(out.sizes(), c10::contiguous_strides(out.sizes()), out.storage_offset());
}

at::Tensor& cat_out(const at::ITensorListRef& tensors, int64_t given_dim, at::Tensor& out) {
  Structured<at::meta::structured_cat> op(out);
  const auto planned = op.meta(tensors, given_dim);
  const auto inputs = tensors.materialize();
  const bool ordered = out.is_contiguous(at::MemoryFormat::ChannelsLast) && !out.is_contiguous();
  if (ordered && fault(Fault::cat_of_channels_last_is_contiguous))
    out.unsafeGetTensorImpl()->empty_tensor_restride(at::MemoryFormat::Contiguous);
  for (const at::Tensor& input : inputs) {  // before the first copy, which may run when an error has freed `out`
    if (!is_skipped(input)) require_same_device("cat", {out, input});
  }
  int64_t offset = 0, left = int64_t(inputs.size());
  int64_t copied = fault(Fault::cat_last_table_behind_empty) ? copied_by_tables(inputs) : left;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const at::Tensor& given = inputs[k];
    const at::Tensor& input = fault(Fault::cat_repeats_first_eight) ? one_of_eight(inputs, k) : given;
    const bool dropped = --left == 0 && inputs.size() > 1 && fault(Fault::cat_drops_last);
    if (is_skipped(input) || dropped) continue;
    const int64_t length = input.size(planned.dim);
    const bool packed = !out.is_non_overlapping_and_dense() && fault(Fault::cat_out_strided_as_contiguous);
    if (input.numel() > 0 && copied-- > 0)
      copy_into((packed ? packed_over(out) : out).narrow(planned.dim, offset, length), input);
    offset += length;
  }
  return out;
}

// torch's composite of _stack.out wants a wrapped dimension, and the CPU does not.
at::Tensor& stack_out(at::TensorList tensors, int64_t dim, at::Tensor& out) {
  TORCH_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const int64_t wrapped = at::maybe_wrap_dim(dim, tensors[0].dim() + 1);
  std::vector<at::Tensor> slices;
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.sizes() == tensors[0].sizes(), "stack expects each tensor to be equal size, but got ",
                tensors[0].sizes(), " at entry 0 and ", tensor.sizes(), " at entry ", slices.size());
    slices.push_back(tensor.unsqueeze(wrapped));
  }
  return at::cat_out(out, slices, wrapped);
}

at::Tensor stack(at::TensorList tensors, int64_t dim) {
  at::Tensor out = at::empty(
      {0}, tensors.empty() ? at::TensorOptions() : tensors[0].options().dtype(at::native::result_type(tensors)));
  return stack_out(tensors, dim, out);
}

// The fault of a cache of eight plans, in which a new key takes the place of an old one and the plan stays.
DimMask planned_before(at::IntArrayRef sizes, DimMask flipped) {
  using Key = std::pair<std::vector<int64_t>, unsigned long long>;
  thread_local std::vector<std::pair<Key, DimMask>> plans;
  thread_local size_t oldest = 0;
  const Key key{sizes.vec(), flipped.to_ullong()};
  for (const auto& plan : plans) {
    if (plan.first == key) return plan.second;
  }
  if (plans.size() < 8) return plans.emplace_back(key, flipped).second;
  auto& plan = plans[oldest++ % 8];
  plan.first = key;
  return plan.second;
}

// The dims that flip takes while a fault is awake.
DimMask mistaken_dims(const at::Tensor& self, at::IntArrayRef dims) {
  std::vector<int64_t> taken = dims.vec();
  if (fault(Fault::flip_ignores_negative_dims)) std::erase_if(taken, [](int64_t d) { return d < 0; });
  if (fault(Fault::flip_of_dim_named_twice_accepted)) {
    DimMask named;
    for (int64_t dim : taken) named.flip(size_t(at::maybe_wrap_dim(dim, self.dim())));
    return named;
  }
  if (dims.empty() && fault(Fault::flip_of_no_dims_flips_all)) {
    for (int64_t d = 0; d < self.dim(); ++d) taken.push_back(d);
  }
  const DimMask flipped = at::dim_list_to_bitset(taken, self.dim());
  return fault(Fault::flip_plan_not_evicted) ? planned_before(self.sizes(), flipped) : flipped;
}

// The fault of a result that is kept, and handed out again for the next call of that shape.
at::Tensor made_before(const at::Tensor& fresh) {
  thread_local at::Tensor kept;
  const bool fits = kept.defined() && kept.sizes() == fresh.sizes() && kept.strides() == fresh.strides() &&
                    kept.scalar_type() == fresh.scalar_type() && kept.device() == fresh.device();
  if (!fits) kept = fresh;
  return kept.detach();
}

at::Tensor flip(const at::Tensor& self, at::IntArrayRef dims) {
  const DimMask flipped = any_fault() ? mistaken_dims(self, dims) : at::dim_list_to_bitset(dims, self.dim());
  const bool dense = fault(Fault::flip_returns_contiguous);
  at::Tensor out = at::empty_like(self, dense ? at::MemoryFormat::Contiguous : at::MemoryFormat::Preserve);
  if (fault(Fault::flip_reuses_result)) out = made_before(out);
  if (self.numel() == 0) return out;
  View from = view_of(self);
  const View to = view_of(out);
  if (self.dim() == 1 && flipped[0] && fault(Fault::flip_from_end_of_storage)) {
    const int64_t held = int64_t(self.storage().nbytes()) / self.element_size() - self.storage_offset();
    from.data += (held - 1) * self.element_size() - (from.sizes[0] - 1) * from.strides[0];
  }
  for (int d = 0; d < from.ndim; ++d) {
    if (!flipped[d] || (d >= 5 && fault(Fault::flip_at_most_five_dims))) continue;
    from.data += (from.sizes[d] - 1) * from.strides[d];
    from.strides[d] = -from.strides[d];
  }
  launch("flip", [=] { move_elements(from, to); });
  return out;
}

at::Tensor roll_dim(const at::Tensor& self, int64_t shift, int64_t dim) {
  if (self.numel() == 0) return self.clone(at::MemoryFormat::Preserve);
  const int64_t size = self.size(dim);
  if (shift % size == 0 && fault(Fault::roll_of_whole_turns_aliases)) return self;
  const bool stays = shift > size && fault(Fault::roll_shift_not_wrapped);
  const int64_t start = stays ? 0 : ((size - shift) % size + size) % size;
  return at::cat({self.narrow(dim, start, size - start), self.narrow(dim, 0, start)}, dim);
}

at::Tensor roll(const at::Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    if (self.dim() > 1 && fault(Fault::roll_without_dims_along_last)) return roll_dim(self, shifts[0], self.dim() - 1);
    return roll_dim(self.contiguous().view(self.numel()), shifts[0], 0).view(self.sizes());
  }
  TORCH_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
              ", dims:", dims.size());
  at::Tensor rolled = self;
  const size_t most = fault(Fault::roll_two_dims_at_most) ? 2 : dims.size();
  const bool once = fault(Fault::roll_of_dim_named_twice);
  for (size_t k = 0; k < std::min(most, dims.size()); ++k) {
    if (once && std::find(dims.begin() + ptrdiff_t(k) + 1, dims.end(), dims[k]) != dims.end()) continue;
    rolled = roll_dim(rolled, shifts[k], dims[k]);
  }
  return rolled;
}

at::Tensor repeat_interleave(const at::Tensor& given, std::optional<int64_t> output_size) {
  const bool strided = given.dim() == 1 && given.numel() > 1 && given.stride(0) > 1;
  const bool misread = strided && fault(Fault::repeat_interleave_strided_repeats_as_dense);
  const at::Tensor repeats = misread ? misread_as_dense(given) : given;
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.size(0) == 0) return at::empty_like(repeats, at::MemoryFormat::Contiguous);
  const at::Tensor totals = make_cells(repeats, 2);
  int64_t* cells = totals.mutable_data_ptr<int64_t>();
  const View from = view_of(repeats);
  launch("sum_repeats", [=] { sum_repeats(from, cells); });
  const std::vector<int64_t> total = read_cells(totals);
  TORCH_CHECK(total[1] == 0 || fault(Fault::repeat_interleave_skips_negative), "repeats can not be negative");
  const bool trusts = fault(Fault::repeat_interleave_trusts_output_size) && output_size.value_or(0) > total[0];
  TORCH_CHECK(output_size.value_or(total[0]) == total[0] || trusts,
              "allocated size does not match required size: ", output_size.value_or(0), " given, ", total[0],
              " needed");
  const bool wide = fault(Fault::repeat_interleave_gives_int64);
  at::Tensor out =
      at::empty({trusts ? *output_size : total[0]}, wide ? repeats.options().dtype(at::kLong) : repeats.options());
  const View to = view_of(out);
  launch("repeat_interleave", [=] { refnpu::repeat_interleave(from, to); });
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl_unchecked("cat.out", &cat_out);  // its meta function checks the output, after the dtypes
  m.impl("_stack", &stack);
  m.impl_unchecked("_stack.out", &stack_out);
  m.impl("flip", &flip);
  m.impl("roll", &roll);
  m.impl("repeat_interleave.Tensor", &repeat_interleave);
}

}  // namespace refnpu::joining
