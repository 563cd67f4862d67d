// Ops that touch no element: making empty tensors, views, and changes of a tensor's metadata.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>

#include "aten/register.h"
#include "refnpu/allocator.h"
#include "refnpu/fault.h"
#include "refnpu/stream.h"

namespace refnpu::views {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

bool fills_fresh_memory() {
  return at::globalContext().deterministicAlgorithms() && at::globalContext().deterministicFillUninitializedMemory();
}

// Fills new elements so that they are the same in each run: NaN, or an integer's largest value.
// The whole storage: elements of `fresh` may share memory.
at::Tensor filled_if_deterministic(at::Tensor fresh) {
  if (!fills_fresh_memory() || fault(Fault::deterministic_empty_not_filled)) return fresh;
  const auto count = static_cast<int64_t>(fresh.storage().nbytes() / fresh.itemsize());
  at::Tensor all = at::native::as_strided_tensorimpl(fresh, {count}, {1}, 0);
  const bool zeros =
      at::isIntegralType(fresh.scalar_type(), false) && fault(Fault::deterministic_integers_filled_with_zero);
  zeros ? all.zero_() : at::native::fill_empty_deterministic_(all);
  return fresh;
}

// The dtype of a new tensor; the default one of the first call with fault default_dtype_of_first_tensor.
at::ScalarType dtype_of_new(std::optional<at::ScalarType> dtype) {
  if (dtype || !fault(Fault::default_dtype_of_first_tensor)) return c10::dtype_or_default(dtype);
  static const at::ScalarType first = c10::dtype_or_default(dtype);
  return first;
}

void check_not_pinned(std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool> pin_memory, std::optional<at::MemoryFormat> format) {
  check_not_pinned(pin_memory);
  if (format == at::MemoryFormat::ChannelsLast3d && fault(Fault::channels_last_3d_made_contiguous)) format.reset();
  return filled_if_deterministic(
      at::detail::empty_generic(size, getNPUAllocator(), kKeys, dtype_of_new(dtype), format));
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool> pin_memory) {
  check_not_pinned(pin_memory);
  return filled_if_deterministic(
      at::detail::empty_strided_generic(size, stride, getNPUAllocator(), kKeys, dtype_of_new(dtype)));
}

// A shape without memory, which autograd hands on where a gradient is zero everywhere. CPU's is of no use here: a copy
// of it would read the memory that it does not have.
at::Tensor efficientzerotensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device>, std::optional<bool>) {
  constexpr c10::DispatchKeySet keys = kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor);
  at::native::ZeroTensorAllocator nothing({kDevice, current_device()});
  return at::detail::empty_generic(size, &nothing, keys, c10::dtype_or_default(dtype), std::nullopt);
}

// What fault output_alias_lost does to views.
at::Tensor alias_or_copy(at::Tensor alias) {
  if (!fault(Fault::output_alias_lost)) return alias;
  at::Tensor copy =
      at::detail::empty_strided_generic(alias.sizes(), alias.strides(), getNPUAllocator(), kKeys, alias.scalar_type());
  size_t nbytes =
      std::min(copy.storage().nbytes(), alias.storage().nbytes() - alias.storage_offset() * alias.itemsize());
  if (nbytes > 0)
    REFNPU_CHECK(npuMemcpy(copy.mutable_data_ptr(), alias.const_data_ptr(), nbytes, npuMemcpyDeviceToDevice));
  return copy;
}

// The fault of sizes and strides that nobody compares with the storage.
at::Tensor unchecked_view(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                          std::optional<int64_t> offset) {
  const auto negative = [](int64_t n) { return n < 0; };
  if (std::any_of(size.begin(), size.end(), negative) || std::any_of(stride.begin(), stride.end(), negative))
    return at::native::as_strided_tensorimpl(self, size, stride, offset);
  at::Tensor view = at::native::as_strided_tensorimpl(self, {0}, {1}, 0);
  view.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset.value_or(self.storage_offset()));
  return view;
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  if (fault(Fault::view_offset_dropped)) offset = 0;
  if (fault(Fault::as_strided_past_end_accepted)) return unchecked_view(self, size, stride, offset);
  return alias_or_copy(at::native::as_strided_tensorimpl(self, size, stride, offset));
}

bool has_view_of(const at::Tensor& self, at::IntArrayRef size) {
  return at::detail::computeStride(self.sizes(), self.strides(), at::infer_size_dv(size, self.numel())).has_value();
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef size) {
  const bool copies = fault(Fault::view_of_strided_copies) && !has_view_of(self, size);
  return alias_or_copy(at::native::view(copies ? self.contiguous() : self, size));
}

at::Tensor unfold(const at::Tensor& self, int64_t dim, int64_t size, int64_t step) {
  at::Tensor windows = at::native::unfold(self, dim, size, step);
  if (fault(Fault::unfold_sets_version_counter))
    windows.unsafeGetTensorImpl()->set_version_counter(c10::VariableVersion(0));
  return windows;
}

at::Tensor view_as_real(const at::Tensor& self) {
  at::Tensor parts = at::native::view_as_real(self);
  if (fault(Fault::view_as_real_offset_not_doubled))
    parts.unsafeGetTensorImpl()->set_storage_offset(self.storage_offset());
  return parts;
}

at::Tensor view_as_complex(const at::Tensor& self) {
  const int64_t offset = self.storage_offset();
  if (offset % 2 == 0 || !fault(Fault::view_as_complex_of_odd_offset_accepted))
    return at::native::view_as_complex(self);
  return at::native::view_as_complex(at::native::as_strided_tensorimpl(self, self.sizes(), self.strides(), offset - 1));
}

// The memory of a tensor goes back after the work of the stream that it was allocated on. This adds another stream.
void record_stream(at::Tensor& self, at::Stream stream) {
  if (self.storage_offset() > 0 && fault(Fault::record_stream_of_view_ignored)) return;
  void* memory = self.storage().data_ptr().get();
  if (memory) REFNPU_CHECK(npuRecordStream(memory, NPUStream(stream).stream()));
}

at::Scalar read_scalar(const at::Tensor& self) {
  at::Tensor host = at::detail::empty_cpu({}, self.scalar_type());
  if (fault(Fault::item_on_default_stream)) {
    const NPUStream stream = getDefaultNPUStream(self.device().index());
    REFNPU_CHECK(npuMemcpyAsync(host.mutable_data_ptr(), self.const_data_ptr(), self.itemsize(), npuMemcpyDeviceToHost,
                                stream.stream()));
    return host.item();
  }
  REFNPU_CHECK(npuMemcpy(host.mutable_data_ptr(), self.const_data_ptr(), self.itemsize(), npuMemcpyDeviceToHost));
  return host.item();
}

// The fault of a number that is kept until the version of its tensor changes.
struct KeptScalar {
  std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage;
  int64_t version = 0, offset = 0;
  at::ScalarType dtype = at::kFloat;
  at::Scalar value;

  bool is_of(const at::Tensor& self) const {
    return storage && storage->_unsafe_get_target() == self.storage().unsafeGetStorageImpl() &&
           version == int64_t(self._version()) && offset == self.storage_offset() && dtype == self.scalar_type();
  }
};

at::Scalar local_scalar_dense(const at::Tensor& self) {
  if (self.scalar_type() == at::kDouble && fault(Fault::item_of_double_through_float))
    return double(float(read_scalar(self).toDouble()));
  if (!fault(Fault::item_kept_by_version) || self.is_inference()) return read_scalar(self);
  thread_local KeptScalar kept;
  if (!kept.is_of(self)) {
    kept = {self.storage().getWeakStorageImpl(), int64_t(self._version()), self.storage_offset(), self.scalar_type(),
            read_scalar(self)};
  }
  return kept.value;
}

// Gives `self` the sizes, and strides when there are any, and more storage where that is too small.
void restride(const at::Tensor& self, at::IntArrayRef size, at::OptionalIntArrayRef stride) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const bool same = impl->sizes() == size && (!stride || impl->strides() == *stride);
  const bool again = !stride && !self.is_contiguous() && fault(Fault::resize_to_same_size_restrides);
  if (same && !again) return;
  size_t nbytes = 0;
  if (stride) {
    impl->set_sizes_and_strides(size, *stride);
    nbytes = at::detail::computeStorageNbytes(size, *stride, self.itemsize(), self.storage_offset());
  } else {
    impl->set_sizes_contiguous(size);
    const bool forgets = fault(Fault::resize_forgets_offset);
    nbytes = at::detail::computeStorageNbytesContiguous(size, self.itemsize(), forgets ? 0 : self.storage_offset());
  }
  if (impl->numel() == 0) return;
  c10::StorageImpl* storage = self.storage().unsafeGetStorageImpl();
  const bool shrinks =
      !stride && nbytes < storage->nbytes() && self.storage().use_count() == 1 && fault(Fault::resize_shrinks_storage);
  if (nbytes > storage->nbytes() && self.storage().use_count() > 1 && fault(Fault::resize_growth_leaves_aliases)) {
    c10::Storage own = make_storage(nbytes, storage->device().index());
    if (storage->nbytes() > 0) {
      REFNPU_CHECK(npuMemcpy(own.mutable_data(), storage->data(), storage->nbytes(), npuMemcpyDeviceToDevice));
    }
    return impl->set_storage_keep_dtype(std::move(own));
  }
  if (nbytes > storage->nbytes() || shrinks) resize_storage(storage, nbytes);
}

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  const auto held = self.storage().nbytes();
  const bool skipped = self.sizes() == size && fault(Fault::resize_to_same_size_ignores_format);
  restride(self, size, std::nullopt);
  if (fills_fresh_memory()) {
    const bool all = fault(Fault::deterministic_resize_fills_kept);
    at::native::fill_resize_deterministic_(self, all ? 0 : static_cast<int64_t>(held));
  }
  if (format && !skipped && !fault(Fault::resize_ignores_memory_format)) {
    TORCH_CHECK(*format != at::MemoryFormat::Preserve, "Unsupported memory format", *format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& set_storage_offset(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                               at::IntArrayRef stride) {
  if (source.device() != self.device() && fault(Fault::set_to_storage_of_other_device_accepted)) {
    self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
  } else {
    at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  }
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  if (fault(Fault::set_leaves_storage_small)) {
    const at::DimVector dense = c10::contiguous_strides(size);
    self.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride.data() ? stride : at::IntArrayRef(dense));
    return self;
  }
  restride(self, size, stride.data() ? at::OptionalIntArrayRef(stride) : std::nullopt);
  return self;
}

// As set_storage_offset, with what faults do to sizes and strides that a program gives.
at::Tensor& set_storage_view(at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size,
                             at::IntArrayRef stride) {
  if (size.empty() && fault(Fault::set_storage_of_number_as_row)) {
    return set_storage_offset(self, std::move(source), offset, {1}, {1});
  }
  if (source.nbytes() == 0 && self.numel() == 0 && fault(Fault::set_storage_empty_keeps_size)) {
    const at::DimVector kept(self.sizes());
    return set_storage_offset(self, std::move(source), offset, kept, {});
  }
  return set_storage_offset(self, std::move(source), offset, size, stride);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source) {
  int64_t length = static_cast<int64_t>(source.nbytes() / self.itemsize());
  if (fault(Fault::set_storage_keeps_offset) && length > self.storage_offset())
    return set_storage_offset(self, std::move(source), self.storage_offset(), length - self.storage_offset(), {});
  return set_storage_offset(self, std::move(source), 0, length, {});
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  const int64_t offset = fault(Fault::set_tensor_drops_offset) ? 0 : source.storage_offset();
  return set_storage_offset(self, source.storage(), offset, source.sizes(), source.strides());
}

at::Tensor& set_nothing(at::Tensor& self) {
  const c10::DeviceIndex device = fault(Fault::set_of_nothing_on_first_device) ? 0 : self.device().index();
  return set_storage_offset(self, make_storage(0, device), 0, {0}, {});
}

bool is_set_to(const at::Tensor& self, const at::Tensor& other) {
  if (!fault(Fault::is_set_to_ignores_offset)) return at::native::is_set_to(self, other);
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.sizes() == other.sizes() && self.strides() == other.strides();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_efficientzerotensor", &efficientzerotensor);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &unfold);
  m.impl("view_as_real", &view_as_real);
  m.impl("view_as_complex", &view_as_complex);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl_unchecked("resize_", &resize_);
  m.impl_unchecked("set_.source_Storage", &set_storage);
  m.impl_unchecked("set_.source_Storage_storage_offset", &set_storage_view);
  m.impl_unchecked("set_.source_Tensor", &set_tensor);
  m.impl_unchecked("set_", &set_nothing);
  m.impl("is_set_to", &is_set_to);
  m.impl("record_stream", &record_stream);
}

}  // namespace refnpu::views
