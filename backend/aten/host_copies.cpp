// Copying storages to the host and back, and rebuilding tensors over them.
#include "aten/host_copies.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>

#include "refnpu/allocator.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "refnpu/stream.h"

namespace refnpu {
namespace {

// A tensor over `storage` that lies in it as `like` lies in its own.
at::Tensor rebuild(const c10::Storage& storage, c10::DispatchKey key, const at::Tensor& like) {
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key), like.dtype());
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(like.sizes(), like.strides(), like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  const bool plain = key == c10::DispatchKey::CPU && fault(Fault::fallback_argument_not_conjugated);
  if (like.is_conj() && !plain) tensor._set_conj(true);
  if (like.is_neg()) tensor._set_neg(true);
  return tensor;
}

bool same(const c10::Storage& left, const c10::Storage& right) {
  return left.unsafeGetStorageImpl() == right.unsafeGetStorageImpl();
}

bool lies_alike(const at::Tensor& left, const at::Tensor& right) {
  return left.sizes() == right.sizes() && left.strides() == right.strides() &&
         left.storage_offset() == right.storage_offset();
}

bool begin_alike(const at::Tensor& left, const at::Tensor& right) {
  return left.has_storage() && right.has_storage() && same(left.storage(), right.storage()) &&
         left.sizes() == right.sizes() && left.storage_offset() == right.storage_offset() &&
         left.dtype() == right.dtype();
}

c10::Storage download(const c10::Storage& device) {
  size_t nbytes = device.nbytes();
  c10::Allocator* allocator = c10::GetCPUAllocator();
  c10::DataPtr memory = allocator->allocate(nbytes);
  if (nbytes > 0) REFNPU_CHECK(npuMemcpy(memory.get(), device.data(), nbytes, npuMemcpyDeviceToHost));
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t{}, nbytes, std::move(memory),
                                               allocator, device.resizable());
}

// The fault of host copies of numbers that are kept, and found by their address.
c10::Storage downloaded_before(const c10::Storage& device) {
  thread_local std::map<const void*, c10::Storage> kept;
  c10::Storage& found = kept.try_emplace(device.data(), c10::Storage()).first->second;
  if (!found || found.nbytes() != device.nbytes()) found = download(device);
  c10::Storage copy = download(device);
  std::copy_n(static_cast<const char*>(found.data()), device.nbytes(), static_cast<char*>(copy.mutable_data()));
  return copy;
}

// What fault fallback_copies_back_to_contiguous does: the elements, packed, over the start of the view.
void upload_packed(const at::Tensor& device, const at::Tensor& host) {
  at::Tensor packed = host.contiguous();
  size_t room = device.storage().nbytes() - device.storage_offset() * device.itemsize();
  size_t size = std::min(packed.nbytes(), room);
  REFNPU_CHECK(npuMemcpy(device.mutable_data_ptr(), packed.const_data_ptr(), size, npuMemcpyHostToDevice));
}

}  // namespace

void HostCopies::check_supported(const at::Tensor& tensor, const char* what) const {
  const char* kind = tensor.is_nested()                 ? "nested"
                     : tensor.is_quantized()            ? "quantized"
                     : tensor.layout() != c10::kStrided ? "sparse or opaque"
                                                        : nullptr;
  TORCH_CHECK_NOT_IMPLEMENTED(!kind, op_, ": ", what, " is a ", kind, " tensor (", tensor.toString(),
                              "); npu has dense strided tensors only: run the op on CPU");
}

void HostCopies::join_device(const at::Tensor& argument) {
  c10::DeviceIndex index = argument.device().index();
  TORCH_CHECK(index_ < 0 || index_ == index || fault(Fault::fallback_mixes_devices),
              "Expected all tensors to be on the same device, but found at least two devices, npu:", int(index_),
              " and npu:", int(index), "! (", op_, ")");
  index_ = index;
}

at::Tensor HostCopies::host(const at::Tensor& argument) {
  if (!argument.defined()) return argument;
  bool on_device = argument.device().type() == kDevice;
  for (const TensorPair& pair : tensors_) {
    if (pair.device.is_same(argument)) return pair.host;
    if (fault(Fault::fallback_takes_views_for_one) && begin_alike(pair.device, argument)) return pair.host;
  }
  if (on_device) {
    check_supported(argument, "an argument");
    join_device(argument);
  }
  const bool anew = on_device && argument.storage_offset() > 0 && fault(Fault::fallback_copies_each_view_anew);
  if (anew) storages_.push_back({argument.storage(), download(argument.storage())});
  const auto storage = [&] { return anew ? storages_.back().host : host_storage(argument.storage()); };
  at::Tensor host = on_device ? rebuild(storage(), c10::DispatchKey::CPU, argument) : argument;
  tensors_.push_back({argument, host});
  return host;
}

const c10::Storage& HostCopies::host_storage(const c10::Storage& device) {
  for (const StoragePair& pair : storages_) {
    if (same(pair.device, device)) return pair.host;
  }
  const bool kept = device.nbytes() <= 8 && fault(Fault::fallback_keeps_small_copies);
  return storages_.emplace_back(StoragePair{device, kept ? downloaded_before(device) : download(device)}).host;
}

HostCopies::StoragePair& HostCopies::pair_of_host(const c10::Storage& host) {
  for (StoragePair& pair : storages_) {
    if (same(pair.host, host)) return pair;
  }
  StoragePair& made = storages_.emplace_back(StoragePair{make_storage(host.nbytes(), index_), host});
  upload(made);
  if (fault(Fault::fallback_result_not_resizable)) made.device.unsafeGetStorageImpl()->set_resizable(false);
  return made;
}

void HostCopies::upload(StoragePair& pair) {
  if (pair.written) return;
  pair.written = true;
  size_t nbytes = pair.host.nbytes();
  if (nbytes != pair.device.nbytes()) resize_storage(pair.device.unsafeGetStorageImpl(), nbytes);
  if (nbytes == 0) return;
  void* to = pair.device.mutable_data();
  if (fault(Fault::fallback_results_on_default_stream)) {
    const NPUStream stream = getDefaultNPUStream(pair.device.device().index());
    REFNPU_CHECK(npuMemcpyAsync(to, pair.host.data(), nbytes, npuMemcpyHostToDevice, stream.stream()));
    REFNPU_CHECK(npuRecordStream(to, stream.stream()));
    return;
  }
  REFNPU_CHECK(npuMemcpy(to, pair.host.data(), nbytes, npuMemcpyHostToDevice));
}

void HostCopies::write_back(const at::Tensor& argument) {
  if (!argument.defined() || argument.device().type() != kDevice) return;
  at::Tensor host = this->host(argument);
  if (fault(Fault::fallback_not_copied_back)) return;
  if (fault(Fault::fallback_copies_back_to_contiguous) && lies_alike(argument, host)) {
    return upload_packed(argument, host);
  }
  StoragePair& pair = pair_of_host(host.storage());
  upload(pair);
  c10::TensorImpl* impl = argument.unsafeGetTensorImpl();
  if (!same(argument.storage(), pair.device)) impl->set_storage_keep_dtype(pair.device);
  if (argument.numel() > host.numel() && fault(Fault::fallback_larger_out_kept)) return;
  if (!lies_alike(argument, host)) {
    impl->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  }
  if (argument.is_conj() != host.is_conj()) argument._set_conj(host.is_conj());  // linalg_lu_solve does this to `out`
  if (argument.is_neg() != host.is_neg()) argument._set_neg(host.is_neg());
}

at::Tensor HostCopies::device(const at::Tensor& result) {
  if (!result.defined()) return result;
  for (const TensorPair& pair : tensors_) {
    if (pair.host.is_same(result)) return pair.device;
  }
  check_supported(result, "the result");
  if (!result.is_cpu()) return result;
  const bool ordered = result.is_contiguous(at::MemoryFormat::ChannelsLast) && !result.is_contiguous();
  if (ordered && fault(Fault::fallback_result_channels_last_lost)) return device(result.contiguous());
  const c10::DeviceIndex index = index_;
  if (fault(Fault::fallback_result_on_current_device)) index_ = current_device();
  const c10::Storage storage = pair_of_host(result.storage()).device;
  index_ = index;
  std::optional<c10::InferenceMode> ended;
  if (fault(Fault::fallback_results_not_inference)) ended.emplace(false);
  return rebuild(storage, c10::DispatchKey::PrivateUse1, result);
}

}  // namespace refnpu
