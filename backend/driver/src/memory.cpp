// Allocating, freeing, copying and setting memory, each checked against the table of allocations.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/src/allocators/allocator.h"
#include "driver/src/device.h"
#include "driver/src/error.h"
#include "driver/src/fill.h"
#include "driver/src/held_blocks.h"
#include "driver/src/late_errors.h"
#include "driver/src/protect.h"
#include "driver/src/schedule.h"
#include "driver/src/stream.h"
#include "driver/src/table.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

std::atomic<size_t> counted_pinned{0};  // bytes, by fault pinned_memory_counts_on_device

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

// A host end in pinned memory must end within its block.
npuError_t check_host_end(const char* end_name, const void* pointer, size_t size, Block* holder) {
  auto block = table().find(pointer);
  if (!block) return npuSuccess;
  std::string where = std::string("npuMemcpy: ") + end_name + " " + hex(pointer) + ", " + bytes(size) + ": ";
  if (block->device >= 0) {
    return fail(npuErrorBadDirection, where + "is device memory " + describe(*block) + ", the direction says host");
  }
  size_t room = block->end() - static_cast<const char*>(pointer);
  if (size > room) return fail(npuErrorOutOfBounds, where + "runs past the end of " + describe(*block));
  *holder = *block;
  return npuSuccess;
}

npuError_t check_end(const char* end_name, const void* pointer, size_t size, bool on_device, Block* holder) {
  if (!pointer) return fail(npuErrorInvalidValue, std::string("npuMemcpy: null ") + end_name + ", " + bytes(size));
  return on_device ? check_device_end("npuMemcpy", end_name, pointer, size, holder)
                   : check_host_end(end_name, pointer, size, holder);
}

// A block of memory for either kind, filled, in the table and protected; null when there is none left.
void* make_block(const Request& wanted) {
  void* start = allocator()->allocate(wanted);
  if (!start) return nullptr;
  Block block{wanted, static_cast<char*>(start), wanted.device < 0 ? nullptr : current_stream(wanted.device)};
  fill_fresh(block);
  table().insert(block);
  protect_add(block);
  return start;
}

npuError_t release(const Block& block, const char* call) {
  protect_remove(block);
  std::string damage = allocator()->verify(block);
  fill_freed(block);
  allocator()->release(block);
  if (damage.empty()) return npuSuccess;
  return fail(npuErrorDamagedMemory, std::string(call) + ": " + describe(block) + ": " + damage);
}

void release_late(const Block& block, const char* call) {
  const int device = std::max(block.device, 0);
  if (block.device >= 0) unhold(device, block.size);
  if (npuError_t error = release(block, call); error != npuSuccess) {
    keep_late_error(device, error, npuGetLastErrorMessage());
  }
}

// Gives the memory back as soon as no submitted work uses the block.
npuError_t end_block(const Block& block, const char* call) {
  const std::vector<Moment> uses = take_uses(block);
  if (uses.empty()) return release(block, call);
  if (block.device >= 0) hold(block.device, block.size);
  release_after(uses, [=] { release_late(block, call); });
  return npuSuccess;
}

// Memory that queued work still uses is memory to be had: waits for it where nothing else is left.
void wait_for_held(const Request& wanted) {
  if (!has_been_late() || on_worker() || !fits_only_without_held(wanted.device, wanted.size)) return;
  for (const Moment& tail : tails_of_device(wanted.device)) tail.wait();
}

npuError_t allocate_on_device(const char* call, void** pointer, const Request& wanted) {
  if (!pointer) return fail(npuErrorInvalidValue, std::string(call) + ": null result pointer");
  *pointer = nullptr;
  NPU_TRY(ready());
  if (wanted.size == 0) return npuSuccess;
  if (fits_only_without_held(wanted.device, wanted.size) && fault(Fault::held_memory_is_out_of_memory)) {
    return fail(npuErrorOutOfMemory, std::string(call) + "(" + bytes(wanted.size) + "): out of memory");
  }
  wait_for_held(wanted);
  NPU_TRY(reserve(wanted.device, wanted.size));
  *pointer = make_block(wanted);
  if (*pointer) return account_allocation(wanted.device, wanted.size), npuSuccess;
  unreserve(wanted.device, wanted.size);
  return fail(npuErrorOutOfMemory,
              std::string(call) + "(" + bytes(wanted.size) + "): the host has no memory left for it");
}

struct Copy {
  void* destination;
  const void* source;
  size_t size;
  npuMemcpyKind kind;
};

enum class Returns { when_done, when_submitted };

// A copy from pageable memory has a copy of its source.
bool is_awaited(npuMemcpyKind kind, size_t size, bool pageable, Returns returns) {
  if (kind == npuMemcpyDeviceToDevice || (kind == npuMemcpyHostToDevice && pageable)) return false;
  if (!pageable) return returns == Returns::when_done && !fault(Fault::pinned_copy_not_awaited);
  if (fault(Fault::copy_to_host_not_awaited)) return false;
  return size > 8 || !fault(Fault::scalar_to_host_not_awaited);
}

// Of the driver's own copies. An end counts as written, so that its old value never has to be kept for the copy.
Uses uses_of(const Block& to, const Block& from = {}) {
  Uses uses;
  for (const Block& end : {to, from}) {
    if (end.start && end.device >= 0) uses.add(end, /*written=*/true);
  }
  return uses;
}

// Submits a copy. From pageable memory it reads now, into memory of its own, since the caller may change the source as
// soon as this returns; to pageable memory it waits, since the caller may read it. Pinned memory is the caller's to
// leave alone until the stream has passed the copy.
npuError_t copy(const char* call, const Copy& what, npuStream_t stream, Returns returns) {
  NPU_TRY(ready());
  const auto [destination, source, size, kind] = what;
  if (kind < npuMemcpyHostToHost || kind > npuMemcpyDeviceToDevice) {
    return fail(npuErrorBadDirection, std::string(call) + ": direction " + std::to_string(kind) + " does not exist");
  }
  if (size == 0) return npuSuccess;
  Block to, from;
  NPU_TRY(check_end("destination", destination, size, kind & npuMemcpyHostToDevice, &to));
  NPU_TRY(check_end("source", source, size, kind & npuMemcpyDeviceToHost, &from));
  if (kind == npuMemcpyHostToHost) return std::memmove(destination, source, size), npuSuccess;
  const int device = from.device >= 0 ? from.device : to.device;
  if (!stream) stream = current_stream(device);
  const bool pageable = kind == npuMemcpyHostToDevice ? !from.start : kind == npuMemcpyDeviceToHost && !to.start;
  std::unique_ptr<std::byte[]> stage;
  if (kind == npuMemcpyHostToDevice && pageable && is_late() && !fault(Fault::stage_not_taken)) {
    stage = std::make_unique_for_overwrite<std::byte[]>(size);
    std::memcpy(stage.get(), source, size);
  }
  const void* read = stage ? stage.get() : source;
  Submission work = submission_of("memcpy", [=, destination = destination, size = size] {
    Window window({to, from});
    std::memmove(destination, read, size);
  });
  work.keep(std::move(stage));
  if (pageable || kind == npuMemcpyDeviceToDevice) work.set_uses(uses_of(to, from));
  for (const Block& end : {to, from}) {
    const void* at = end.start == to.start ? destination : source;
    const bool inside = end.device < 0 && end.start != at;
    const bool is_target = kind == npuMemcpyDeviceToHost && end.start == to.start;
    if (is_target && fault(Fault::pinned_target_not_held)) continue;
    if (inside && fault(Fault::pinned_view_use_forgotten)) continue;
    if (end.start && end.device != device) record_use(end, stream);  // pinned, or of another device
  }
  Moment done;
  NPU_TRY(submit(stream, std::move(work), &done));
  if (!is_awaited(kind, size, pageable, returns)) return npuSuccess;
  return pageable ? run_for(done, device, call) : wait_for(done, device, call);
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

// The block leaves the table at once, so that a second free is seen.
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
  if (*pointer && refnpu::fault(refnpu::Fault::pinned_memory_counts_on_device)) {
    NPU_TRY(reserve(0, size));
    account_allocation(0, size);
    counted_pinned += size;
  }
  if (*pointer) return npuSuccess;
  return fail(npuErrorOutOfMemory, "npuMallocHost(" + bytes(size) + "): the host has no memory left");
}

npuError_t npuFreeHost(void* pointer) {
  if (!pointer) return npuSuccess;
  NPU_TRY(ready());
  Block block;
  NPU_TRY(table().remove(pointer, /*pinned=*/true, &block));
  if (counted_pinned >= block.size && refnpu::fault(refnpu::Fault::pinned_memory_counts_on_device)) {
    counted_pinned -= block.size;
    account_free(0, block.size);
  }
  return end_block(block, "npuFreeHost");
}

npuError_t npuMemcpy(void* destination, const void* source, size_t size, npuMemcpyKind kind) {
  return copy("npuMemcpy", {destination, source, size, kind}, nullptr, Returns::when_done);
}

npuError_t npuMemcpyAsync(void* destination, const void* source, size_t size, npuMemcpyKind kind, npuStream_t stream) {
  NPU_TRY(resolve(stream, &stream, "npuMemcpyAsync"));
  return copy("npuMemcpyAsync", {destination, source, size, kind}, stream, Returns::when_submitted);
}

npuError_t npuRecordStream(void* pointer, npuStream_t stream) {
  NPU_TRY(resolve(stream, &stream, "npuRecordStream"));
  auto block = table().find(pointer);
  if (!block) {
    return fail(npuErrorUntrackedPointer,
                "npuRecordStream: " + hex(pointer) + " is in no live block; " + table().nearest(pointer));
  }
  const bool current = block->device >= 0 && stream == current_stream(block->device);
  if (current && refnpu::fault(refnpu::Fault::current_stream_not_recorded)) return npuSuccess;
  record_use(*block, stream);
  return npuSuccess;
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
  Submission work = submission_of("memset", set);
  work.set_uses(uses_of(to));
  return submit(current_stream(to.device), std::move(work));
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
  for (int device = 0; device < device_count(); ++device) NPU_TRY(synchronize_device(device, "npuVerifyMemory"));
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
