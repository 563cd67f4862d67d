// Streams, events and kernel launches, in the run-at-once mode: submitted work is done when the call returns.
#include "driver/src/stream.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "driver/src/activity.h"
#include "driver/src/device.h"
#include "driver/src/error.h"
#include "driver/src/protect.h"
#include "driver/src/segv_report.h"
#include "refnpu/fault.h"

using Clock = std::chrono::steady_clock;

struct npuStream_st {
  int device;
  std::atomic<uint64_t> submitted{0};
};

struct npuEvent_st {
  bool recorded = false;
  int device = -1;
  Clock::time_point when;
};

namespace refnpu::driver {
namespace {

struct Streams {
  std::mutex mutex;
  std::vector<std::unique_ptr<npuStream_st>> defaults;
  std::set<npuStream_t> created;
};

Streams* make_streams() {
  auto* streams = new Streams;
  for (int device = 0; device < device_count(); ++device) streams->defaults.emplace_back(new npuStream_st{device, {}});
  return streams;
}

Streams& streams() {
  static Streams* instance = make_streams();
  return *instance;
}

thread_local std::vector<npuStream_t> current_streams;  // by device; null or missing: the default stream

// A fault that strikes one kernel by name, so that the cells that fail are that kernel's.
void maybe_misbehave(const char* name) {
  static std::atomic<bool> sorted{false};
  if (std::strncmp(name, "sort", 4) == 0 && fault(Fault::crash_after_sort)) sorted = true;
  if (std::strncmp(name, "masked_fill", 11) != 0) return;
  if (fault(Fault::crash_in_kernel)) std::raise(SIGSEGV);
  if (fault(Fault::crash_in_some_processes) && getpid() % 3 == 0) std::raise(SIGSEGV);
  if (fault(Fault::crash_after_sort) && sorted) std::raise(SIGSEGV);
  while (fault(Fault::hang_in_kernel)) usleep(100000);
}

class RunningKernel {
 public:
  explicit RunningKernel(const char* name) : before_(set_running_kernel(name)) {}
  ~RunningKernel() { set_running_kernel(before_); }
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

 private:
  const char* before_;
};

// What a stream does with the work whose turn it is.
npuError_t execute(npuStream_t stream, const Submission& work) {
  if (any_fault()) maybe_misbehave(work.name());
  try {
    RunningKernel running(work.name());
    TimedActivity timed(stream, stream->device, work);
    work.run();
  } catch (const std::exception& error) {
    return fail(npuErrorLaunchFailure, std::string("kernel '") + work.name() + "': " + error.what());
  }
  return npuSuccess;
}

}  // namespace

void Submission::run() const {
  if (opens_ == Opens::by_itself) return kernel_(arguments_.get());
  Window everything;
  kernel_(arguments_.get());
}

npuStream_t current_stream(int device) {
  if (static_cast<size_t>(device) < current_streams.size() && current_streams[device]) return current_streams[device];
  return streams().defaults[device].get();
}

npuError_t resolve(npuStream_t stream, npuStream_t* resolved, const char* call) {
  NPU_TRY(ready());
  *resolved = stream ? stream : streams().defaults[current_device()].get();
  if (!stream) return npuSuccess;
  for (const auto& each : streams().defaults) {
    if (each.get() == stream) return npuSuccess;
  }
  std::lock_guard lock(streams().mutex);
  if (streams().created.count(stream)) return npuSuccess;
  return fail(npuErrorInvalidValue, std::string(call) + ": " + hex(stream) + " is not a live stream");
}

npuError_t submit(npuStream_t stream, Submission work) {
  stream->submitted.fetch_add(1, std::memory_order_relaxed);
  return execute(stream, work);
}

npuError_t synchronize_device(int) { return ready(); }

}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow
using refnpu::driver::current_stream;

extern "C" {

npuError_t npuDeviceSynchronize(void) { return synchronize_device(current_device()); }

npuError_t npuStreamCreate(npuStream_t* stream) {
  if (!stream) return fail(npuErrorInvalidValue, "npuStreamCreate: null result pointer");
  NPU_TRY(ready());
  std::lock_guard lock(streams().mutex);
  *stream = *streams().created.insert(new npuStream_st{current_device(), {}}).first;
  return npuSuccess;
}

npuError_t npuStreamDestroy(npuStream_t stream) {
  std::lock_guard lock(streams().mutex);
  if (!streams().created.erase(stream)) {
    return fail(npuErrorInvalidValue, "npuStreamDestroy: " + hex(stream) + " is not a stream made by npuStreamCreate");
  }
  delete stream;
  return npuSuccess;
}

npuError_t npuStreamSynchronize(npuStream_t stream) { return resolve(stream, &stream, "npuStreamSynchronize"); }

npuError_t npuStreamQuery(npuStream_t stream) { return resolve(stream, &stream, "npuStreamQuery"); }

npuError_t npuStreamGetDevice(npuStream_t stream, int* device) {
  if (!device) return fail(npuErrorInvalidValue, "npuStreamGetDevice: null result pointer");
  NPU_TRY(resolve(stream, &stream, "npuStreamGetDevice"));
  *device = stream->device;
  return npuSuccess;
}

npuError_t npuGetDefaultStream(npuStream_t* stream, int device) {
  if (!stream) return fail(npuErrorInvalidValue, "npuGetDefaultStream: null result pointer");
  NPU_TRY(check_device(device, "npuGetDefaultStream"));
  *stream = streams().defaults[device].get();
  return npuSuccess;
}

npuError_t npuGetCurrentStream(npuStream_t* stream, int device) {
  if (!stream) return fail(npuErrorInvalidValue, "npuGetCurrentStream: null result pointer");
  NPU_TRY(check_device(device, "npuGetCurrentStream"));
  *stream = current_stream(device);
  return npuSuccess;
}

npuError_t npuSetCurrentStream(npuStream_t stream) {
  NPU_TRY(resolve(stream, &stream, "npuSetCurrentStream"));
  if (current_streams.size() < streams().defaults.size()) current_streams.resize(streams().defaults.size());
  current_streams[stream->device] = stream;
  return npuSuccess;
}

npuError_t npuLaunch(npuStream_t stream, const char* name, npuKernel_t kernel, const void* arguments, size_t size) {
  if (!kernel) return fail(npuErrorInvalidValue, "npuLaunch: null kernel");
  if (!arguments && size > 0) return fail(npuErrorInvalidValue, "npuLaunch: null arguments");
  NPU_TRY(ready());
  npuStream_t where = stream ? stream : streams().defaults[current_device()].get();
  return submit(where, {name, kernel, arguments, size, Opens::everything});
}

npuError_t npuEventCreate(npuEvent_t* event) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventCreate: null result pointer");
  *event = new npuEvent_st;
  return npuSuccess;
}

npuError_t npuEventDestroy(npuEvent_t event) {
  delete event;
  return npuSuccess;
}

npuError_t npuEventRecord(npuEvent_t event, npuStream_t stream) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventRecord: null event");
  NPU_TRY(resolve(stream, &stream, "npuEventRecord"));
  event->recorded = true;
  event->device = stream->device;
  event->when = Clock::now();
  return npuSuccess;
}

npuError_t npuEventQuery(npuEvent_t event) {
  return event ? npuSuccess : fail(npuErrorInvalidValue, "npuEventQuery: null event");
}

npuError_t npuEventSynchronize(npuEvent_t event) {
  return event ? npuSuccess : fail(npuErrorInvalidValue, "npuEventSynchronize: null event");
}

npuError_t npuStreamWaitEvent(npuStream_t stream, npuEvent_t event) {
  if (!event) return fail(npuErrorInvalidValue, "npuStreamWaitEvent: null event");
  return resolve(stream, &stream, "npuStreamWaitEvent");
}

npuError_t npuEventElapsedTime(float* milliseconds, npuEvent_t start, npuEvent_t end) {
  if (!milliseconds || !start || !end) return fail(npuErrorInvalidValue, "npuEventElapsedTime: null argument");
  if (!start->recorded || !end->recorded) {
    return fail(npuErrorInvalidValue, "npuEventElapsedTime: both events must have been recorded");
  }
  if (start->device != end->device) {
    return fail(npuErrorInvalidValue, "npuEventElapsedTime: events of npu:" + std::to_string(start->device) +
                                          " and npu:" + std::to_string(end->device));
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
  return npuSuccess;
}

}  // extern "C"
