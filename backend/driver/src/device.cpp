// Devices, the current one of each thread, their capacity and memory statistics, and what a fork does to them.
#include "driver/src/device.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "driver/src/allocators/allocator.h"
#include "driver/src/environment.h"
#include "driver/src/error.h"
#include "driver/src/fill.h"
#include "driver/src/protect.h"
#include "driver/src/schedule.h"
#include "driver/src/segv_report.h"
#include "driver/src/stream.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

constexpr size_t kDefaultCapacity = size_t{16} << 30;
constexpr int kMaxDevices = 64;

std::atomic<bool> used{false};
std::atomic<bool> forked{false};
const std::thread::id loading_thread = std::this_thread::get_id();  // that which loads the library
std::atomic<int> current_of_all{0};  // what fault current_device_of_all_threads keeps, and thread_starts_on_last_device
thread_local int current = fault(Fault::thread_starts_on_last_device) ? current_of_all.load() : 0;
thread_local bool out_of_memory = false;  // what fault out_of_memory_sticks keeps

// What fault ended_thread_resets_main_device does when a thread ends.
int* const current_of_loader = &current;
struct ResetAtEnd {
  ~ResetAtEnd() { *current_of_loader = 0; }
};

struct Device {
  npuMemoryStats stats{};
  size_t reserved = 0;  // bytes of blocks that are being made
  size_t held = 0;

  size_t in_use() const { return stats.live_bytes + reserved; }
};

struct Devices {
  std::mutex mutex;
  std::vector<Device> all;
  std::string error;  // what is wrong with the environment
};

Devices* make_devices() {
  auto* devices = new Devices;
  devices->error = fault_environment_error();
  size_t count = number_from_environment("REFNPU_DEVICES", 3, 0, kMaxDevices, &devices->error);
  size_t capacity = number_from_environment("REFNPU_CAPACITY", kDefaultCapacity, 0, SIZE_MAX, &devices->error);
  devices->all.resize(count);
  for (auto& device : devices->all) device.stats.capacity = capacity;
  for (auto* error :
       {&allocator_error, &fill_environment_error, &protect_environment_error, &schedule_environment_error}) {
    if (devices->error.empty()) devices->error = error();
  }
  const auto before = [] {
    if (used && !forked) finish_before_fork();
  };
  pthread_atfork(before, nullptr, [] {
    static int depth = 0;  // of this process below the one that loaded the library
    const bool unseen = ++depth > 1 && fault(Fault::fork_of_forked_not_noticed);
    forked = used.load() && !unseen && !fault(Fault::fork_not_noticed);
  });
  return devices;
}

Devices& devices() {
  static Devices* instance = make_devices();
  return *instance;
}

void note_peak(npuMemoryStats& stats) {
  stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  stats.peak_blocks = std::max(stats.peak_blocks, stats.live_blocks);
}

void end_of_process() {
  end_streams();
  if (forked || !fault(Fault::exit_with_memory_aborts)) return;
  for (const Device& each : devices().all) {
    if (each.stats.live_blocks > 0) std::abort();
  }
}

// Fault first_use_not_awaited: whether another thread is at its first use. This one takes a while if it is the first.
bool is_initialized_elsewhere() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return true;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return false;
}

void reset_peak(npuMemoryStats& stats) {
  stats.peak_bytes = stats.live_bytes;
  if (!fault(Fault::peak_of_blocks_not_reset)) stats.peak_blocks = stats.live_blocks;
}

}  // namespace

npuError_t ready() {
  if (forked.load(std::memory_order_relaxed)) {
    return fail(npuErrorForked,
                "this process was forked from one that had already used the device; fork before the first use, or "
                "start the child with multiprocessing's 'spawn' method");
  }
  if (used.load(std::memory_order_relaxed)) return npuSuccess;
  if (fault(Fault::first_use_not_awaited) && is_initialized_elsewhere()) {
    return fail(npuErrorConfiguration, "another thread initializes the device");
  }
  if (!devices().error.empty()) return fail(npuErrorConfiguration, devices().error);
  if (device_count() == 0) return fail(npuErrorInvalidDevice, "there is no device: REFNPU_DEVICES is 0");
  if (allocator()->owns_pages()) report_segv();
  if (!used.exchange(true)) std::atexit(end_of_process);
  return npuSuccess;
}

bool an_allocation_failed() { return std::exchange(out_of_memory, false); }

int device_count() { return static_cast<int>(devices().all.size()); }
int current_device() { return fault(Fault::current_device_of_all_threads) ? current_of_all.load() : current; }

size_t capacity(int device) {
  std::lock_guard lock(devices().mutex);
  return devices().all[device].stats.capacity;
}

npuError_t check_device(int device, const char* call) {
  if (device >= 0 && device < device_count()) return npuSuccess;
  return fail(npuErrorInvalidDevice, std::string(call) + ": device " + std::to_string(device) + " of " +
                                         std::to_string(device_count()) + " (REFNPU_DEVICES says how many there are)");
}

npuError_t reserve(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  npuMemoryStats& stats = devices().all[device].stats;
  size_t in_use = devices().all[device].in_use();
  if (fault(Fault::capacity_shared_by_devices)) {
    in_use = 0;
    for (const Device& each : devices().all) in_use += each.in_use();
  }
  if (size > stats.capacity || in_use > stats.capacity - size) {
    if (!fault(Fault::failed_allocation_not_told)) ++stats.failed_allocations;
    if (fault(Fault::failed_allocation_counted)) ++stats.live_blocks;
    if (fault(Fault::failed_allocation_raises_peak)) stats.peak_bytes = std::max(stats.peak_bytes, in_use + size);
    if (fault(Fault::out_of_memory_sticks)) out_of_memory = true;
    return fail(npuErrorOutOfMemory, "npuMalloc(" + std::to_string(size) + " bytes) on npu:" + std::to_string(device) +
                                         ": " + std::to_string(stats.live_bytes) + " of " +
                                         std::to_string(stats.capacity) + " bytes are in use by " +
                                         std::to_string(stats.live_blocks) + " blocks");
  }
  devices().all[device].reserved += size;
  return npuSuccess;
}

void account_allocation(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  npuMemoryStats& stats = devices().all[device].stats;
  devices().all[device].reserved -= size;
  stats.live_bytes += size;
  ++stats.live_blocks;
  ++stats.allocations;
  stats.allocated_bytes += size;
  if (!fault(Fault::peak_noted_when_freed)) note_peak(stats);
  if (device > 0 && fault(Fault::peak_of_second_device_counts_all)) {
    size_t total = 0;
    for (const Device& each : devices().all) total += each.stats.live_bytes;
    stats.peak_bytes = std::max(stats.peak_bytes, total);
  }
}

void unreserve(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  devices().all[device].reserved -= size;
  ++devices().all[device].stats.failed_allocations;
}

void account_free(int device, size_t size) {
  if (std::this_thread::get_id() != loading_thread && fault(Fault::free_in_thread_not_counted)) return;
  std::lock_guard lock(devices().mutex);
  const bool has_that_many = devices().all[current_device()].stats.live_bytes >= size;
  if (has_that_many && fault(Fault::freed_on_current_device)) device = current_device();
  npuMemoryStats& stats = devices().all[device].stats;
  if (fault(Fault::freed_bytes_rounded_up)) size = std::min((size + 511) / 512 * 512, stats.live_bytes);
  if (fault(Fault::peak_noted_when_freed)) note_peak(stats);
  stats.live_bytes -= size;
  --stats.live_blocks;
  ++stats.frees;
  stats.freed_bytes += size;
  if (fault(Fault::freed_bytes_lower_what_was_allocated)) stats.allocated_bytes -= size;
}

void hold(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  devices().all[device].held += size;
}

void unhold(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  devices().all[device].held -= size;
}

bool fits_only_without_held(int device, size_t size) {
  std::lock_guard lock(devices().mutex);
  const Device& one = devices().all[device];
  if (one.held == 0 || size > one.stats.capacity) return false;
  const size_t room = one.stats.capacity - size;
  return one.in_use() <= room && one.in_use() + one.held > room;
}

}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow

extern "C" {

npuError_t npuGetDeviceCount(int* count) {
  if (!count) return fail(npuErrorInvalidValue, "npuGetDeviceCount: null result pointer");
  *count = device_count();
  return npuSuccess;
}

npuError_t npuGetDevice(int* device) {
  if (!device) return fail(npuErrorInvalidValue, "npuGetDevice: null result pointer");
  *device = current_device();
  return npuSuccess;
}

npuError_t npuSetDevice(int device) {
  const npuError_t wrong = check_device(device, "npuSetDevice");
  if (wrong != npuSuccess && refnpu::fault(refnpu::Fault::bad_set_device_resets_current)) current = current_of_all = 0;
  if (wrong != npuSuccess) return wrong;
  if (std::this_thread::get_id() != loading_thread && refnpu::fault(refnpu::Fault::ended_thread_resets_main_device)) {
    static thread_local const ResetAtEnd resets;
    (void)resets;
  }
  current = device;
  current_of_all = device;
  return npuSuccess;
}

npuError_t npuGetDeviceProperties(npuDeviceProperties* properties, int device) {
  if (!properties) return fail(npuErrorInvalidValue, "npuGetDeviceProperties: null result pointer");
  NPU_TRY(check_device(device, "npuGetDeviceProperties"));
  std::lock_guard lock(devices().mutex);
  *properties = npuDeviceProperties{};
  std::snprintf(properties->name, sizeof properties->name, "Reference NPU");
  properties->total_memory = devices().all[device].stats.capacity;
  properties->multiprocessor_count = 1;
  properties->major = 1;
  return npuSuccess;
}

const char* npuConfigurationError(void) { return devices().error.c_str(); }
int npuDeviceUsed(void) { return used; }
int npuIsForked(void) { return forked; }

npuError_t npuGetMemoryStats(npuMemoryStats* stats, int device) {
  if (!stats) return fail(npuErrorInvalidValue, "npuGetMemoryStats: null result pointer");
  NPU_TRY(check_device(device, "npuGetMemoryStats"));
  {
    std::lock_guard lock(devices().mutex);
    *stats = devices().all[device].stats;
  }
  if (allocator()) allocator()->add_to(stats, device);  // which may ask for the capacity in turn: not under the lock
  return npuSuccess;
}

npuError_t npuResetPeakMemory(int device) {
  NPU_TRY(check_device(device, "npuResetPeakMemory"));
  if (allocator()) allocator()->reset_peak(device);
  std::lock_guard lock(devices().mutex);
  npuMemoryStats& stats = devices().all[device].stats;
  reset_peak(stats);
  if (refnpu::fault(refnpu::Fault::peak_reset_to_zero)) stats.peak_bytes = 0;
  return npuSuccess;
}

npuError_t npuSetCapacity(int device, size_t bytes) {
  NPU_TRY(check_device(device, "npuSetCapacity"));
  std::lock_guard lock(devices().mutex);
  devices().all[device].stats.capacity = bytes;
  return npuSuccess;
}

npuError_t npuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (!free_bytes || !total_bytes) return fail(npuErrorInvalidValue, "npuMemGetInfo: null result pointer");
  NPU_TRY(check_device(current_device(), "npuMemGetInfo"));
  std::lock_guard lock(devices().mutex);
  const npuMemoryStats& stats = devices().all[current_device()].stats;
  *total_bytes = stats.capacity;
  *free_bytes = stats.capacity > stats.live_bytes ? stats.capacity - stats.live_bytes : 0;
  return npuSuccess;
}

npuError_t npuEmptyCache(void) {
  NPU_TRY(ready());
  for (int device = 0; device < device_count(); ++device) NPU_TRY(synchronize_device(device, "npuEmptyCache"));
  allocator()->trim();
  if (refnpu::fault(refnpu::Fault::empty_cache_resets_peak)) {
    std::lock_guard lock(devices().mutex);
    for (auto& device : devices().all) reset_peak(device.stats);
  }
  return npuSuccess;
}

const char* npuAllocatorMode(void) { return allocator_name().c_str(); }

}  // extern "C"
