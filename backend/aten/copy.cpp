// Copies between tensors: host and device, within a device and across, with any strides, dtypes and pending bits.
#include "kernels/copy.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/_conj.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/real.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/ScopeExit.h>

#include <cstring>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "kernels/unary.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "refnpu/stream.h"

namespace refnpu::copies {
namespace {

// What has to be done to the values besides moving them, since a bit is set on one side only.
std::optional<Unary> pending_function(const at::Tensor& target, const at::Tensor& source) {
  const bool lost = fault(Fault::conj_bit_ignored) ||
                    (target.scalar_type() != source.scalar_type() && fault(Fault::conversion_drops_conj));
  const bool twice = target.is_conj() && source.is_conj() && fault(Fault::copy_conj_on_both_sides);
  const bool conj = (target.is_conj() != source.is_conj() && !lost) || twice;
  const bool neg = target.is_neg() != source.is_neg() && !fault(Fault::neg_bit_ignored);
  if (conj && neg) return Unary::neg_conj;
  if (conj) return Unary::conj;
  return neg ? std::optional(Unary::neg) : std::nullopt;
}

Nest<2> nest_of_copy(const at::Tensor& target, const at::Tensor& source) {
  const bool checked = !fault(Fault::copy_overlap_forward);
  auto iter = at::TensorIteratorConfig()
                  .set_check_mem_overlap(checked)
                  .add_output(target)
                  .add_const_input(source)
                  .resize_outputs(false)
                  .check_all_same_dtype(false)
                  .check_all_same_device(false)
                  .build();
  Nest<2> nest = nest_of<2>(iter);
  const bool is_part = source.dim() == 2 && source.stride(1) == 1 && source.stride(0) > source.size(1);
  const bool is_inside = is_part && source.size(0) > 1 && source.storage_offset() >= source.stride(0);
  if (is_inside && fault(Fault::copy_of_slice_drops_column))
    nest.data[1] -= source.storage_offset() % source.stride(0) * source.itemsize();
  if (fault(Fault::copy_ignores_offset)) nest.data[1] -= source.storage_offset() * source.itemsize();
  return nest;
}

// Both on one device.
void copy_on_device(const at::Tensor& target, const at::Tensor& source) {
  const c10::DeviceGuard guard(target.device());
  if (target.is_complex() && !source.is_complex() && fault(Fault::copy_leaves_imaginary_parts))
    return copy_on_device(at::real(target), source);
  const Nest<2> nest = nest_of_copy(target, source);
  if (nest.numel() == 0) return;
  CallReads reads;
  at::Tensor written = target;  // which ops that copy take by const reference
  if (npuIsLazy()) reads.read(written, source);
  const auto function = pending_function(target, source);
  if (!function) {
    launch("copy", [=] { copy_kernel(nest); });
    return;
  }
  // A source with a bit is negated as what it is; a source for a target with one is converted first, since a bool has
  // no negative, and an integer no negative zero.
  const DType seen = nest.dtypes[source.is_conj() || source.is_neg() ? 1 : 0], computed = compute_dtype(seen);
  launch("copy", Elementwise<2>{nest, {seen, seen}, {computed, computed}, unary_row(*function, computed), {}});
}

// Nothing but bytes: same dtype, same bits, and the same elements at the same places of two blocks without gaps.
bool is_one_block(const at::Tensor& target, const at::Tensor& source) {
  const bool any_order = target.device().type() != source.device().type() && source.is_non_overlapping_and_dense() &&
                         fault(Fault::dense_transfer_ignores_order);
  return target.scalar_type() == source.scalar_type() && !pending_function(target, source) &&
         target.sizes() == source.sizes() && (target.strides() == source.strides() || any_order) &&
         target.is_non_overlapping_and_dense();
}

// Whether a copy to or from pinned memory is done when it returns. All others are, or keep a copy of the source.
enum class Waits { yes, no };

void copy_block(const at::Tensor& target, const at::Tensor& source, npuMemcpyKind kind, Waits waits) {
  if (target.numel() == 0) return;
  void* to = target.mutable_data_ptr();
  const void* from = source.const_data_ptr();
  if (kind == npuMemcpyDeviceToHost && fault(Fault::download_ignores_target_offset))
    to = target.storage().mutable_data();
  const bool of_view = kind == npuMemcpyHostToDevice && waits == Waits::no && source.storage_offset() > 0;
  if (of_view && source.is_pinned() && fault(Fault::pinned_upload_ignores_offset)) from = source.storage().data();
  size_t nbytes = target.nbytes();
  const bool large = nbytes > (1 << 20) && kind == npuMemcpyHostToDevice;
  if (large && fault(Fault::upload_drops_last_page)) nbytes = nbytes / 4096 * 4096;
  if (waits == Waits::yes) {
    REFNPU_CHECK(npuMemcpy(to, from, nbytes, kind));
    return;
  }
  const c10::DeviceIndex device = (source.is_cpu() ? target : source).device().index();
  const bool own = kind != npuMemcpyDeviceToDevice && fault(Fault::async_copies_on_default_stream);
  const NPUStream stream = own ? getDefaultNPUStream(device) : getCurrentNPUStream(device);
  REFNPU_CHECK(npuMemcpyAsync(to, from, nbytes, kind, stream.stream()));
}

// The fault of a staging buffer of 64 KiB whose last part is not filled again.
void repeat_first_bytes(const at::Tensor& host) {
  constexpr size_t kStaging = 1 << 16;
  char* first = static_cast<char*>(host.mutable_data_ptr());
  const size_t left = host.nbytes() % kStaging;
  if (host.nbytes() > kStaging) std::memcpy(first + host.nbytes() - left, first, left);
}

at::Tensor empty_on(const at::Tensor& like, at::ScalarType dtype, at::Device device) {
  return at::empty(like.sizes(), at::TensorOptions().dtype(dtype).device(device));
}

// A view of `tensor` with the bits flipped that `pattern` has set.
at::Tensor with_bits_of(const at::Tensor& tensor, const at::Tensor& pattern) {
  const at::Tensor conjugated = pattern.is_conj() ? at::_conj(tensor) : tensor;
  return pattern.is_neg() ? at::_neg_view(conjugated) : conjugated;
}

// The fault of a number that is written to all elements from the first of a view to its last.
void fill_stretch(const at::Tensor& view, const at::Scalar& value) {
  int64_t length = view.numel() > 0;
  for (int64_t d = 0; d < view.dim() && length > 0; ++d) length += (view.size(d) - 1) * view.stride(d);
  view.as_strided({length}, {1}).fill_(value);
}

// The fault of a cast that is computed in the memory of its source, where a view begins inside a block.
void cast_over_source(const at::Tensor& source, const at::Tensor& cast) {
  const bool fits = cast.scalar_type() != source.scalar_type() && cast.nbytes() <= source.nbytes();
  if (!fits || source.storage_offset() == 0 || !source.is_contiguous() || cast.numel() == 0) return;
  REFNPU_CHECK(npuMemcpy(source.mutable_data_ptr(), cast.const_data_ptr(), cast.nbytes(), npuMemcpyDeviceToDevice));
}

// The fault of a target that overlaps itself: its elements are written as they come, through one that does not.
bool writes_overlapping(const at::Tensor& target, const at::Tensor& source) {
  if (at::has_internal_overlap(target) != at::MemOverlap::Yes || !fault(Fault::upload_to_overlapping_accepted))
    return false;
  at::Tensor values = target, uploaded = source.expand(target.sizes());
  for (int64_t d = 0; d < target.dim(); ++d) {
    if (target.stride(d) != 0) continue;
    values = values.narrow(d, 0, 1);
    uploaded = uploaded.narrow(d, target.size(d) - 1, 1);
  }
  values.copy_(uploaded);
  return true;
}

// The fault of a copy that reads host memory when the device gets to it.
void read_later(const at::Tensor& target, const at::Tensor& host) {
  const c10::DeviceGuard guard(target.device());
  launch("copy", [to = target.mutable_data_ptr(), from = host.const_data_ptr(), nbytes = host.nbytes()] {
    std::memcpy(to, from, nbytes);
  });
}

void copy_host_to_device(const at::Tensor& target, const at::Tensor& source, Waits waits) {
  if (writes_overlapping(target, source)) return;
  at::assert_no_internal_overlap(target);
  if (is_one_block(target, source)) return copy_block(target, source, npuMemcpyHostToDevice, waits);
  if (source.dim() == 0 && fault(Fault::number_upload_fills_gaps)) return fill_stretch(target, source.item());
  const bool rounds = target.scalar_type() == at::kDouble &&
                      at::isIntegralType(source.scalar_type(), /*includeBool=*/true) &&
                      fault(Fault::upload_to_double_through_float);
  if (rounds) return copy_host_to_device(target, source.to(at::kFloat), waits);
  // Pending bits are left out of the staged values and put on the staged tensor: the device resolves them.
  const at::Tensor dense = with_bits_of(source, source).contiguous();
  const at::Tensor staged = empty_on(source, source.scalar_type(), target.device());
  const bool early = fault(Fault::staged_pinned_upload_not_awaited) && dense.is_pinned();
  const bool own = dense.const_data_ptr() == source.const_data_ptr() && !dense.is_pinned();
  if (own && fault(Fault::staged_upload_reads_late)) {
    read_later(staged, dense);
  } else {
    copy_block(staged, dense, npuMemcpyHostToDevice, early ? Waits::no : Waits::yes);
  }
  copy_on_device(target, with_bits_of(staged, source));
}

// The fault of a strided host tensor that is written as one stretch, with what lies between its elements.
void clear_stretch(const at::Tensor& view) {
  if (view.numel() == 0 || view.is_non_overlapping_and_dense()) return;
  int64_t length = 1;
  for (int64_t d = 0; d < view.dim(); ++d) length += (view.size(d) - 1) * view.stride(d);
  view.as_strided({length}, {1}).zero_();
}

void copy_device_to_host(const at::Tensor& target, const at::Tensor& source, Waits waits) {
  at::assert_no_internal_overlap(target);
  if (is_one_block(target, source)) return copy_block(target, source, npuMemcpyDeviceToHost, waits);
  const at::Tensor staged = empty_on(source, target.scalar_type(), source.device());
  copy_on_device(staged, source);
  if (fault(Fault::converted_download_overwrites_source)) cast_over_source(source, staged);
  if (waits == Waits::no && fault(Fault::staged_download_not_awaited)) {
    const auto pinned = at::TensorOptions().dtype(target.scalar_type()).device(at::kCPU).pinned_memory(true);
    const at::Tensor early = at::empty(source.sizes(), pinned);
    copy_block(early, staged, npuMemcpyDeviceToHost, Waits::no);
    target.copy_(early);
    return;
  }
  const at::Tensor dense = empty_on(source, target.scalar_type(), target.device());
  copy_block(dense, staged, npuMemcpyDeviceToHost, Waits::yes);
  if (fault(Fault::staged_download_repeats_chunk)) repeat_first_bytes(dense);
  if (fault(Fault::download_to_strided_clears_gaps)) clear_stretch(target);
  target.copy_(dense);
}

// Makes what is submitted to `later` from now on wait for what was submitted to `earlier` so far.
void order_streams(const NPUStream& earlier, const NPUStream& later) {
  npuEvent_t event = nullptr;
  REFNPU_CHECK(npuEventCreate(&event));
  const auto destroy = c10::make_scope_exit([&] { npuEventDestroy(event); });
  REFNPU_CHECK(npuEventRecord(event, earlier.stream()));
  REFNPU_CHECK(npuStreamWaitEvent(later.stream(), event));
}

// The faults of a step on a new stream, which waits for another one. Returns the new stream.
template <class Step>
NPUStream on_own_stream(const NPUStream& awaited, c10::Device device, const Step& step) {
  const NPUStream own = getNewNPUStream(device.index());
  order_streams(awaited, own);
  const c10::StreamGuard guard(own);
  step();
  return own;
}

// The source's stream copies. It waits for work that still uses the target, and the target's stream waits for it.
// `staged`: whether the blocks are dense ones that a copy of other tensors is made through.
void copy_block_across(const at::Tensor& target, const at::Tensor& source, bool staged = false) {
  const NPUStream from = getCurrentNPUStream(source.device().index());
  const NPUStream to = getCurrentNPUStream(target.device().index());
  const bool overtakes = fault(staged ? Fault::staged_peer_copy_overtakes_target : Fault::peer_copy_overtakes_target);
  if (!overtakes) order_streams(to, from);
  copy_block(target, source, npuMemcpyDeviceToDevice, Waits::no);
  const bool early = fault(staged ? Fault::staged_peer_copy_not_awaited : Fault::peer_copy_not_awaited);
  if (!early) order_streams(from, to);
}

void copy_across_devices(const at::Tensor& target, const at::Tensor& source) {
  at::assert_no_internal_overlap(target);
  if (is_one_block(target, source)) return copy_block_across(target, source);
  const bool bytes_only = source.is_conj() && target.scalar_type() == source.scalar_type() &&
                          target.sizes() == source.sizes() && target.strides() == source.strides() &&
                          target.is_non_overlapping_and_dense();
  if (bytes_only && fault(Fault::peer_copy_drops_conj)) return copy_block_across(target, source);
  const bool alike = target.element_size() == source.element_size() && target.sizes() == source.sizes() &&
                     target.is_contiguous() && source.is_contiguous();
  if (alike && fault(Fault::peer_copy_keeps_bytes)) return copy_block_across(target, source);
  const NPUStream from = getCurrentNPUStream(source.device().index());
  const at::Tensor arrived = empty_on(source, target.scalar_type(), target.device());
  const auto send = [&] {
    const at::Tensor staged = empty_on(source, target.scalar_type(), source.device());
    copy_on_device(staged, source);
    copy_block_across(arrived, staged, /*staged=*/true);
  };
  const bool is_column = source.dim() > 1 && source.size(-1) == 1 && target.size(-1) > 1;
  const bool first = is_column && fault(Fault::peer_copy_broadcast_of_first_row);
  const auto receive = [&] { copy_on_device(target, first ? arrived.narrow(0, 0, 1) : arrived); };
  if (fault(Fault::staged_peer_copy_on_own_stream)) {
    on_own_stream(from, source.device(), send);
  } else {
    send();
  }
  if (!fault(Fault::staged_peer_copy_overtakes_target)) return receive();
  const NPUStream own = on_own_stream(from, target.device(), receive);
  order_streams(own, getCurrentNPUStream(target.device().index()));
}

// Registered under the names of torch's schema: `self` is the source. non_blocking matters for pinned memory.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  if (self.is_same(target)) return target;
  const bool transfers = self.device().type() != target.device().type() && self.numel() == target.numel();
  const bool reshapes = transfers && !at::is_expandable_to(self.sizes(), target.sizes());
  if (reshapes && fault(Fault::transfer_reshapes_equal_numel))
    return copy_from(self.reshape(target.sizes()), target, non_blocking);
  if (!at::is_expandable_to(self.sizes(), target.sizes())) {
    TORCH_CHECK(false, "output with shape ", target.sizes(), " doesn't match the broadcast shape ",
                at::IntArrayRef(at::infer_size(target.sizes(), self.sizes())));
  }
  const Waits waits = non_blocking ? Waits::no : Waits::yes;
  if (self.device() == target.device()) {
    copy_on_device(target, self);
  } else if (self.is_cpu()) {
    const bool misread = non_blocking && fault(Fault::non_blocking_source_as_dense);
    copy_host_to_device(target, misread ? misread_as_dense(self) : self, waits);
  } else if (target.is_cpu()) {
    copy_device_to_host(target, self, waits);
  } else {
    copy_across_devices(target, self);
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& target) {
  target.resize_(self.sizes());
  return copy_from(self, target, false);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
}

}  // namespace refnpu::copies
