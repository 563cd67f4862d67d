// Allocating, freeing, copying and setting memory, each checked against the table of allocations.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "driver/src/allocators/allocator.h"
#include "driver/src/device.h"
#include "driver/src/error.h"
#include "driver/src/fill.h"
#include "driver/src/protect.h"
#include "driver/src/stream.h"
#include "driver/src/table.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

std::string bytes(size_t size) { return std::to_string(size) + " bytes"; }

// One end of a copy must lie in a live block and end within it.
npuError_t check_device_end(const char* call, const char* end_name, const void* pointer, size_t size, Block* holder) {
  std::string where = std::string(call) + ": " + end_name + " " + hex(pointer) + ", " + bytes(size) + ": ";
  auto block = table().find(pointer);
  if (!block) return fail(npuErrorUntrackedPointer, where + "in no live block; " + table().nearest(pointer));
  if (block->device < 0) return fail(npuErrorBadDirection, where + "is " + describe(*block) + ", not device memory");
  size_t room = block->end() - static_cast<const char*>(pointer);
  if (size > room) {
    return fail(npuErrorOutOfBounds, where + "runs " + bytes(size - room) + " past the end of " + describe(*block));
  }
  *holder = *block;
  return npuSuccess;
}

npuError_t check_host_end(const char* end_name, const void* pointer, size_t size) {
  auto block = table().find(pointer);
  if (!block) return npuSuccess;
  std::string where = std::string("npuMemcpy: ") + end_name + " " + hex(pointer) + ", " + bytes(size) + ": ";
  if (block->device >= 0) {
    return fail(npuErrorBadDirection, where + "is device memory " + describe(*block) + ", the direction says host");
  }
  size_t room = block->end() - static_cast<const char*>(pointer);
  return size <= room ? npuSuccess : fail(npuErrorOutOfBounds, where + "runs past the end of " + describe(*block));
}

npuError_t check_end(const char* end_name, const void* pointer, size_t size, bool on_device, Block* holder) {
  if (!pointer) return fail(npuErrorInvalidValue, std::string("npuMemcpy: null ") + end_name + ", " + bytes(size));
  return on_device ? check_device_end("npuMemcpy", end_name, pointer, size, holder)
                   : check_host_end(end_name, pointer, size);
}

// A block of memory for either kind, filled, in the table and protected; null when there is none left.
void* make_block(const Request& wanted) {
  void* start = allocator()->allocate(wanted);
  if (!start) return nullptr;
  Block block{wanted, static_cast<char*>(start)};
  fill_fresh(block);
  table().insert(block);
  protect_add(block);
  return start;
}

// Waits for all work that may still use the block: its memory may go to another at once.
npuError_t end_block(const Block& block, const char* call) {
  for (int device = 0; device < device_count(); ++device) {
    if (block.device < 0 || block.device == device) NPU_TRY(synchronize_device(device));
  }
  protect_remove(block);
  std::string damage = allocator()->verify(block);
  fill_freed(block);
  allocator()->release(block);
  if (damage.empty()) return npuSuccess;
  return fail(npuErrorDamagedMemory, std::string(call) + ": " + describe(block) + ": " + damage);
}

npuError_t allocate_on_device(const char* call, void** pointer, const Request& wanted) {
  if (!pointer) return fail(npuErrorInvalidValue, std::string(call) + ": null result pointer");
  *pointer = nullptr;
  NPU_TRY(ready());
  if (wanted.size == 0) return npuSuccess;
  NPU_TRY(reserve(wanted.device, wanted.size));
  *pointer = make_block(wanted);
  if (*pointer) return npuSuccess;
  unreserve(wanted.device, wanted.size);
  return fail(npuErrorOutOfMemory,
              std::string(call) + "(" + bytes(wanted.size) + "): the host has no memory left for it");
}

}  // namespace
}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow

extern "C" {

npuError_t npuMalloc(void** pointer, size_t size) {
  return allocate_on_device("npuMalloc", pointer, {size, 1, current_device()});
}

npuError_t npuMallocAligned(void** pointer, size_t size, size_t alignment) {
  if (!std::has_single_bit(alignment)) {
    return fail(npuErrorInvalidValue,
                "npuMallocAligned: alignment " + std::to_string(alignment) + " is not a power of two");
  }
  if (refnpu::fault(refnpu::Fault::alignment_ignored)) alignment = 1;
  return allocate_on_device("npuMallocAligned", pointer, {size, alignment, current_device()});
}

// The block leaves the table at once, so that a second free is seen; its memory goes back after the submitted work.
npuError_t npuFree(void* pointer) {
  if (!pointer) return npuSuccess;
  NPU_TRY(ready());
  Block block;
  NPU_TRY(table().remove(pointer, /*pinned=*/false, &block));
  account_free(block.device, block.size);
  return end_block(block, "npuFree");
}

npuError_t npuMallocHost(void** pointer, size_t size) {
  if (!pointer) return fail(npuErrorInvalidValue, "npuMallocHost: null result pointer");
  *pointer = nullptr;
  NPU_TRY(ready());
  if (size == 0) return npuSuccess;
  *pointer = make_block({size, 1, -1});
  if (*pointer) return npuSuccess;
  return fail(npuErrorOutOfMemory, "npuMallocHost(" + bytes(size) + "): the host has no memory left");
}

npuError_t npuFreeHost(void* pointer) {
  if (!pointer) return npuSuccess;
  NPU_TRY(ready());
  Block block;
  NPU_TRY(table().remove(pointer, /*pinned=*/true, &block));
  return end_block(block, "npuFreeHost");
}

npuError_t npuMemcpy(void* destination, const void* source, size_t size, npuMemcpyKind kind) {
  NPU_TRY(ready());
  if (kind < npuMemcpyHostToHost || kind > npuMemcpyDeviceToDevice) {
    return fail(npuErrorBadDirection, "npuMemcpy: direction " + std::to_string(kind) + " does not exist");
  }
  if (size == 0) return npuSuccess;
  Block to, from;
  NPU_TRY(check_end("destination", destination, size, kind & npuMemcpyHostToDevice, &to));
  NPU_TRY(check_end("source", source, size, kind & npuMemcpyDeviceToHost, &from));
  const auto copy = [=] {
    Window window({to, from});
    std::memmove(destination, source, size);
  };
  if (kind == npuMemcpyHostToHost) return copy(), npuSuccess;
  int device = from.device >= 0 ? from.device : to.device;
  NPU_TRY(submit(current_stream(device), submission_of("memcpy", copy)));
  return kind == npuMemcpyDeviceToDevice ? npuSuccess : synchronize_device(device);
}

npuError_t npuMemset(void* destination, int byte, size_t size) {
  NPU_TRY(ready());
  if (size == 0) return npuSuccess;
  Block to;
  NPU_TRY(check_device_end("npuMemset", "destination", destination, size, &to));
  const auto set = [=] {
    Window window({to});
    std::memset(destination, byte, size);
  };
  return submit(current_stream(to.device), submission_of("memset", set));
}

npuError_t npuSetFill(const char* fresh, const char* freed) {
  std::string wrong = fresh ? set_fill_of_fresh(fresh) : "";
  if (wrong.empty() && freed) wrong = set_fill_of_freed(freed);
  return wrong.empty() ? npuSuccess : fail(npuErrorInvalidValue, "npuSetFill: " + wrong);
}

npuError_t npuPointerGetAttributes(npuPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return fail(npuErrorInvalidValue, "npuPointerGetAttributes: null result pointer");
  *attributes = {npuMemoryUnregistered, -1, nullptr, 0};
  if (auto block = table().find(pointer)) {
    *attributes = {block->device < 0 ? npuMemoryPinned : npuMemoryDevice, block->device, block->start, block->size};
  }
  return npuSuccess;
}

npuError_t npuVerifyMemory(char* report, size_t report_size, size_t* damaged_blocks) {
  if (!damaged_blocks) return fail(npuErrorInvalidValue, "npuVerifyMemory: null result pointer");
  NPU_TRY(ready());
  for (int device = 0; device < device_count(); ++device) NPU_TRY(synchronize_device(device));
  *damaged_blocks = 0;
  std::string text;
  Window window;
  table().each([&](const Block& block) {
    std::string damage = allocator()->verify(block);
    if (damage.empty()) return;
    ++*damaged_blocks;
    text += describe(block) + ": " + damage + "\n";
  });
  if (report && report_size > 0) {
    size_t length = std::min(report_size - 1, text.size());
    std::memcpy(report, text.data(), length);
    report[length] = '\0';
  }
  return npuSuccess;
}

}  // extern "C"
