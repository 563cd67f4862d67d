// Allocating, freeing, copying and setting memory, each checked against the table of allocations.
#include <algorithm>
#include <cstring>
#include <string>

#include "driver/src/allocators/allocator.h"
#include "driver/src/device.h"
#include "driver/src/error.h"
#include "driver/src/stream.h"
#include "driver/src/table.h"

namespace refnpu::driver {
namespace {

std::string bytes(size_t size) { return std::to_string(size) + " bytes"; }

// One end of a copy must lie in a live block and end within it.
npuError_t check_device_end(const char* call, const char* end_name, const void* pointer, size_t size, int* device) {
  std::string where = std::string(call) + ": " + end_name + " " + hex(pointer) + ", " + bytes(size) + ": ";
  auto block = table().find(pointer);
  if (!block) return fail(npuErrorUntrackedPointer, where + "in no live block; " + table().nearest(pointer));
  if (block->device < 0) return fail(npuErrorBadDirection, where + "is " + describe(*block) + ", not device memory");
  size_t room = block->end() - static_cast<const char*>(pointer);
  if (size > room) {
    return fail(npuErrorOutOfBounds, where + "runs " + bytes(size - room) + " past the end of " + describe(*block));
  }
  *device = block->device;
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

npuError_t check_end(const char* end_name, const void* pointer, size_t size, bool on_device, int* device) {
  if (!pointer) return fail(npuErrorInvalidValue, std::string("npuMemcpy: null ") + end_name + ", " + bytes(size));
  return on_device ? check_device_end("npuMemcpy", end_name, pointer, size, device)
                   : check_host_end(end_name, pointer, size);
}

}  // namespace
}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow

extern "C" {

npuError_t npuMalloc(void** pointer, size_t size) {
  if (!pointer) return fail(npuErrorInvalidValue, "npuMalloc: null result pointer");
  *pointer = nullptr;
  NPU_TRY(ready());
  if (size == 0) return npuSuccess;
  int device = current_device();
  NPU_TRY(reserve(device, size));
  void* start = allocator()->allocate(size);
  if (!start) {
    unreserve(device, size);
    return fail(npuErrorOutOfMemory, "npuMalloc(" + bytes(size) + "): the host has no memory left for it");
  }
  table().insert({static_cast<char*>(start), size, device});
  *pointer = start;
  return npuSuccess;
}

// The block leaves the table at once, so that a second free is seen; its memory goes back after the submitted work.
npuError_t npuFree(void* pointer) {
  if (!pointer) return npuSuccess;
  NPU_TRY(ready());
  Block block;
  NPU_TRY(table().remove(pointer, /*pinned=*/false, &block));
  account_free(block.device, block.size);
  return submit_after_all(block.device, "free", [block] { allocator()->release(block.start, block.size); });
}

npuError_t npuMallocHost(void** pointer, size_t size) {
  if (!pointer) return fail(npuErrorInvalidValue, "npuMallocHost: null result pointer");
  *pointer = nullptr;
  NPU_TRY(ready());
  if (size == 0) return npuSuccess;
  void* start = allocator()->allocate(size);
  if (!start) return fail(npuErrorOutOfMemory, "npuMallocHost(" + bytes(size) + "): the host has no memory left");
  table().insert({static_cast<char*>(start), size, -1});
  *pointer = start;
  return npuSuccess;
}

npuError_t npuFreeHost(void* pointer) {
  if (!pointer) return npuSuccess;
  NPU_TRY(ready());
  Block block;
  NPU_TRY(table().remove(pointer, /*pinned=*/true, &block));
  for (int device = 0; device < device_count(); ++device) NPU_TRY(synchronize_device(device));
  allocator()->release(block.start, block.size);
  return npuSuccess;
}

npuError_t npuMemcpy(void* destination, const void* source, size_t size, npuMemcpyKind kind) {
  NPU_TRY(ready());
  if (kind < npuMemcpyHostToHost || kind > npuMemcpyDeviceToDevice) {
    return fail(npuErrorBadDirection, "npuMemcpy: direction " + std::to_string(kind) + " does not exist");
  }
  if (size == 0) return npuSuccess;
  int to = -1, from = -1;
  NPU_TRY(check_end("destination", destination, size, kind & npuMemcpyHostToDevice, &to));
  NPU_TRY(check_end("source", source, size, kind & npuMemcpyDeviceToHost, &from));
  auto copy = [=] { std::memmove(destination, source, size); };
  if (kind == npuMemcpyHostToHost) return copy(), npuSuccess;
  int device = from >= 0 ? from : to;
  NPU_TRY(submit(current_stream(device), "memcpy", copy));
  return kind == npuMemcpyDeviceToDevice ? npuSuccess : synchronize_device(device);
}

npuError_t npuMemset(void* destination, int byte, size_t size) {
  NPU_TRY(ready());
  if (size == 0) return npuSuccess;
  int device = -1;
  NPU_TRY(check_device_end("npuMemset", "destination", destination, size, &device));
  return submit(current_stream(device), "memset", [=] { std::memset(destination, byte, size); });
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
  for (const Block& block : table().blocks()) {
    std::string damage = allocator()->verify(block.start, block.size);
    if (damage.empty()) continue;
    ++*damaged_blocks;
    text += describe(block) + ": " + damage + "\n";
  }
  if (report && report_size > 0) {
    size_t length = std::min(report_size - 1, text.size());
    std::memcpy(report, text.data(), length);
    report[length] = '\0';
  }
  return npuSuccess;
}

}  // extern "C"
