// torch's pinned-memory allocator over npuMallocHost and npuFreeHost.
#include "runtime/host_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "refnpu/fault.h"
#include "refnpu/stream.h"

namespace refnpu {
namespace {

void free_pinned(void* pointer) {
  npuError_t error = npuFreeHost(pointer);
  if (error == npuSuccess || error == npuErrorForked) return;
  std::fprintf(stderr, "refnpu: %s\n", npuGetLastErrorMessage());
  std::abort();
}

const std::thread::id loading_thread = std::this_thread::get_id();  // that which loads the library

class PinnedAllocator final : public HostAllocatorBase {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    if (std::this_thread::get_id() != loading_thread && fault(Fault::pinned_in_thread_is_pageable))
      return c10::GetCPUAllocator()->allocate(nbytes);
    if (!npuDeviceUsed() && fault(Fault::pinned_before_first_use_is_pageable))
      return c10::GetCPUAllocator()->allocate(nbytes);
    if (nbytes > (1 << 20) && fault(Fault::large_pinned_memory_is_pageable))
      return c10::GetCPUAllocator()->allocate(nbytes);
    void* pointer = nullptr;
    REFNPU_CHECK(npuMallocHost(&pointer, nbytes));
    return {pointer, pointer, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* destination, const void* source, size_t count) const override {
    default_copy_data(destination, source, count);
  }

#if REFNPU_HAS_HOST_ALLOCATOR
  bool record_event(void* pointer, void*, c10::Stream stream) override {
    return npuRecordStream(pointer, NPUStream(stream).stream()) == npuSuccess;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
#endif
};

}  // namespace

HostAllocatorBase* host_allocator() {
  static auto* instance = new PinnedAllocator;
  return instance;
}

bool is_pinned(const void* pointer) {
  npuPointerAttributes attributes;
  REFNPU_CHECK(npuPointerGetAttributes(&attributes, pointer));
  return attributes.type == npuMemoryPinned;
}

#if REFNPU_HAS_HOST_ALLOCATOR
REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, host_allocator())
#endif

}  // namespace refnpu
