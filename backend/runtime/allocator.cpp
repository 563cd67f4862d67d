// torch's allocator over npuMalloc and npuFree, its statistics, and growing a storage in place.
#include "refnpu/allocator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "refnpu/fault.h"
#include "refnpu/stream.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

// A deleter cannot throw, and a free that the driver refuses means that somebody's memory is damaged: stop here.
void free_block(void* pointer) {
  npuError_t error = npuFree(pointer);
  if (error == npuSuccess || error == npuErrorForked) return;
  std::fprintf(stderr, "refnpu: %s\n", npuGetLastErrorMessage());
  std::abort();
}

#if REFNPU_HAS_DEVICE_ALLOCATOR
void fill(c10::CachingAllocator::StatArray& array, size_t current, size_t peak, size_t allocated, size_t freed) {
  auto& stat = array[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  stat.current = static_cast<int64_t>(current);
  stat.peak = static_cast<int64_t>(peak);
  stat.allocated = static_cast<int64_t>(allocated);
  stat.freed = static_cast<int64_t>(freed);
}
#endif

class Allocator final : public DeviceAllocatorBase {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    c10::DeviceIndex device = current_device();
    if (fault(Fault::second_device_lands_on_first)) device = 0;
    NPUGuard guard(device);
    void* pointer = nullptr;
    const size_t short_by = fault(Fault::block_too_short) && nbytes > 4 ? 4 : 0;
    REFNPU_CHECK(npuMalloc(&pointer, nbytes - short_by));
    return {pointer, pointer, &free_block, c10::Device(kDevice, device)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* destination, const void* source, size_t count) const override {
    REFNPU_CHECK(npuMemcpy(destination, source, count, npuMemcpyDeviceToDevice));
  }

#if REFNPU_HAS_DEVICE_ALLOCATOR
  bool initialized() override { return npuDeviceUsed(); }
  void emptyCache(c10::MempoolId_t) override { REFNPU_CHECK(npuEmptyCache()); }
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    if (memory.get()) REFNPU_CHECK(npuRecordStream(memory.get(), NPUStream(stream).stream()));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    npuMemoryStats stats;
    REFNPU_CHECK(npuGetMemoryStats(&stats, device));
    c10::CachingDeviceAllocator::DeviceStats result;
    const size_t peak = fault(Fault::accelerator_peak_is_current) ? stats.live_bytes : stats.peak_bytes;
    for (auto* bytes : {&result.allocated_bytes, &result.active_bytes, &result.requested_bytes})
      fill(*bytes, stats.live_bytes, peak, stats.allocated_bytes, stats.freed_bytes);
    fill(result.reserved_bytes, stats.reserved_bytes, stats.peak_reserved_bytes,
         stats.reserved_bytes + stats.returned_bytes, stats.returned_bytes);
    fill(result.segment, stats.segments, stats.peak_segments, stats.segments + stats.returned_segments,
         stats.returned_segments);
    for (auto* count : {&result.allocation, &result.active})
      fill(*count, stats.live_blocks, stats.peak_blocks, stats.allocations, stats.frees);
    result.num_ooms = static_cast<int64_t>(stats.failed_allocations);
    return result;
  }

  void resetAccumulatedStats(c10::DeviceIndex) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "npu: accumulated memory statistics count from the start of the process");
  }
  void resetPeakStats(c10::DeviceIndex device) override { REFNPU_CHECK(npuResetPeakMemory(device)); }
#endif
#if REFNPU_HAS_MEMORY_INFO
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    NPUGuard guard(fault(Fault::memory_info_of_current_device) ? c10::DeviceIndex(-1) : device);
    size_t free_bytes = 0, total_bytes = 0;
    REFNPU_CHECK(npuMemGetInfo(&free_bytes, &total_bytes));
    return {free_bytes, total_bytes};
  }
#endif
};

}  // namespace

c10::Allocator* getNPUAllocator() {
  static auto* instance = new Allocator;
  return instance;
}

c10::Storage make_storage(size_t nbytes, c10::DeviceIndex device) {
  NPUGuard guard(device);
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t{}, nbytes,
                                               getNPUAllocator()->allocate(nbytes), getNPUAllocator(),
                                               /*resizable=*/true);
}

void resize_storage(c10::StorageImpl* storage, size_t nbytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  if (nbytes == 0 && fault(Fault::resize_to_zero_ignored)) return;
  if (fault(Fault::resized_nbytes_rounded)) nbytes = (nbytes + 511) / 512 * 512;
  const bool forgets =
      storage->device().index() != current_device() && fault(Fault::resized_on_other_device_keeps_nothing);
  NPUGuard guard(fault(Fault::storage_resized_on_current_device) ? current_device() : storage->device().index());
  c10::DataPtr fresh;
  try {
    fresh = getNPUAllocator()->allocate(nbytes);
  } catch (const std::exception&) {
    if (nbytes > storage->nbytes() && fault(Fault::failed_growth_empties_storage)) {  // the old block went first
      storage->set_data_ptr_noswap(c10::DataPtr(nullptr, storage->device()));
      storage->set_nbytes(0);
    }
    throw;
  }
  size_t kept = std::min(nbytes, storage->nbytes());
  if (fault(Fault::resize_keeps_first_bytes)) kept = std::min<size_t>(kept, 64);
  if (forgets) kept = 0;
  if (nbytes < storage->nbytes() && fault(Fault::shrunk_storage_is_cleared)) {
    if (nbytes > 0) REFNPU_CHECK(npuMemset(fresh.get(), 0, nbytes));
    kept = 0;
  }
  if (kept > 0 && fault(Fault::storage_resized_on_default_stream)) {
    const NPUStream stream = getDefaultNPUStream(storage->device().index());
    REFNPU_CHECK(npuMemcpyAsync(fresh.get(), storage->data(), kept, npuMemcpyDeviceToDevice, stream.stream()));
    kept = 0;
  }
  if (kept > 0) REFNPU_CHECK(npuMemcpy(fresh.get(), storage->data(), kept, npuMemcpyDeviceToDevice));
  c10::DataPtr old = storage->set_data_ptr(std::move(fresh));
  storage->set_nbytes(nbytes);
  if (nbytes == 0 && fault(Fault::emptied_storage_keeps_block)) old.release_context();
  if (fault(Fault::double_free) && old.get()) free_block(old.get());
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, getNPUAllocator())

}  // namespace refnpu
