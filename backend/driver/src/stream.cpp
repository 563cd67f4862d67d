// Streams and kernel launches: who runs submitted work, and who waits for it.
#include "driver/src/stream.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "driver/src/activity.h"
#include "driver/src/current_streams.h"
#include "driver/src/device.h"
#include "driver/src/error.h"
#include "driver/src/late_errors.h"
#include "driver/src/launch_faults.h"
#include "driver/src/protect.h"
#include "driver/src/schedule.h"
#include "driver/src/segv_report.h"
#include "refnpu/fault.h"

struct npuStream_st {
  int device;
  std::shared_ptr<refnpu::driver::Queue> queue;
  std::vector<std::byte> arguments = {};  // what fault launch_arguments_overwritten keeps
};

namespace refnpu::driver {
namespace {

constexpr std::chrono::seconds kPatience(10);  // with work that hangs, at a fork and at the exit

struct Streams {
  std::mutex mutex;
  std::vector<std::unique_ptr<npuStream_st>> defaults;
  std::set<npuStream_t> created;  // under `mutex`
  std::atomic<uint64_t> count{0};

  npuStream_st* make(int device) { return new npuStream_st{device, std::make_shared<Queue>(device, count++)}; }
};

Streams* make_streams() {
  auto* streams = new Streams;
  for (int device = 0; device < device_count(); ++device) streams->defaults.emplace_back(streams->make(device));
  return streams;
}

Streams& streams() {
  static Streams* instance = make_streams();
  return *instance;
}

// Of all streams of a device, of all devices when it is negative.
std::vector<std::shared_ptr<Queue>> queues(int device) {
  std::vector<std::shared_ptr<Queue>> found;
  const auto add = [&](const npuStream_st& stream) {
    if (device < 0 || stream.device == device) found.push_back(stream.queue);
  };
  std::lock_guard lock(streams().mutex);
  for (const auto& each : streams().defaults) add(*each);
  for (npuStream_t each : streams().created) add(*each);
  return found;
}

// The stream on which a fault lets a kernel run.
npuStream_t misdirected(npuStream_t stream, const char* name) {
  const bool first = stream->device == 0;
  if (!first && std::strcmp(name, "softmax") == 0 && fault(Fault::softmax_on_first_device)) {
    return streams().defaults[0].get();
  }
  if (!first && std::strcmp(name, "reduce_total") == 0 && fault(Fault::second_device_sums_on_default_stream)) {
    return streams().defaults[stream->device].get();
  }
  if (std::strcmp(name, "cat") == 0 && fault(Fault::cat_on_default_stream)) {
    return streams().defaults[stream->device].get();
  }
  return stream;
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

// How long kernels ran, for fault event_times_leave_out_idle_time.
std::atomic<std::chrono::steady_clock::rep> busy{0};

// Adds the time until the end of a scope to it.
class CountedTime {
 public:
  ~CountedTime() { busy += (std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Runs work whose turn has come. Returns the message of what it raised, nothing if it raised nothing.
std::optional<std::string> execute(npuStream_t stream, int device, const Submission& work) {
  try {
    if (any_fault()) maybe_misbehave(work.name());
    RunningKernel running(work.name());
    TimedActivity timed(stream, device, work);
    std::optional<CountedTime> counted;
    if (fault(Fault::event_times_leave_out_idle_time)) counted.emplace();
    work.run();
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
  return std::nullopt;
}

npuError_t run_at_once(npuStream_t stream, const Submission& work) {
  const std::optional<std::string> raised = execute(stream, stream->device, work);
  if (!raised) return npuSuccess;
  const std::string message = std::string("kernel '") + work.name() + "': " + *raised;
  if (fault(Fault::error_told_by_next_launch)) {
    keep_late_error(stream->device, npuErrorLaunchFailure, message);
    return npuSuccess;
  }
  return fail(npuErrorLaunchFailure, message);
}

void run_late(npuStream_t stream, int device, const Submission& work) {
  const std::optional<std::string> raised = execute(stream, device, work);
  if (!raised) return;
  const std::string by = *work.call() ? std::string(", submitted by '") + work.call() + "'" : std::string();
  keep_late_error(device, npuErrorLaunchFailure,
                  std::string("kernel '") + work.name() + "'" + by + ", on npu:" + std::to_string(device) + ": " +
                      *raised + " (the kernel ran late; REFNPU_LAUNCH_BLOCKING=1 raises this where it is submitted)");
}

class LateWork final : public Work {
 public:
  LateWork(npuStream_t stream, Submission work) : stream_(stream), device_(stream->device), work_(std::move(work)) {}
  void run() override { run_late(stream_, device_, work_); }
  Uses* uses() override { return work_.uses(); }

 private:
  npuStream_t stream_;
  int device_;
  Submission work_;
};

npuError_t enqueue(npuStream_t stream, std::unique_ptr<Work> work, Starts starts, Moment* end) {
  try {
    *end = {stream->queue, stream->queue->push(std::move(work), starts)};
  } catch (const std::system_error& error) {
    return fail(npuErrorOutOfMemory,
                "no thread for a stream of npu:" + std::to_string(stream->device) + ": " + error.what());
  }
  return npuSuccess;
}

// What is left of a stream after it was made synchronous again has to end first.
bool runs_at_once(const Queue& queue) { return !is_late() && queue.idle(); }

}  // namespace

void Submission::run() const {
  if (opens_ == Opens::by_itself) return kernel_(arguments_.get());
  Window everything;
  kernel_(shared_ ? shared_ : arguments_.get());
}

void Submission::find_uses() {
  if (opens_ == Opens::everything) uses_.add_pointers(arguments_.get(), size_, current_reads());
}

void Submission::share_arguments(std::vector<std::byte>& place) {
  constexpr size_t kRoom = 1 << 16;
  if (opens_ == Opens::by_itself || size_ > kRoom) return;
  place.resize(kRoom);
  std::memcpy(place.data(), arguments_.get(), size_);
  shared_ = place.data();
}

npuStream_t current_stream(int device) {
  const auto& current = current_streams();
  if (static_cast<size_t>(device) < current.size() && current[device]) return current[device];
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

npuError_t submit(npuStream_t stream, Submission work, Moment* end) {
  if (runs_at_once(*stream->queue)) return run_at_once(stream, work);
  const char* name = work.name();
  NPU_TRY(may_wait(name));
  if (fault(Fault::launch_arguments_overwritten)) work.share_arguments(stream->arguments);
  if (is_lazy()) work.find_uses();
  Moment done;
  NPU_TRY(enqueue(stream, std::make_unique<LateWork>(stream, std::move(work)), Starts::delayed, &done));
  if (end) *end = done;
  if (!launch_blocking() && is_late()) return npuSuccess;
  return wait_for(done, stream->device, name);
}

npuError_t submit_own(npuStream_t stream, std::unique_ptr<Work> work, Moment* end) {
  if (runs_at_once(*stream->queue)) return work->run(), npuSuccess;
  Moment done;
  return enqueue(stream, std::move(work), Starts::at_once, end ? end : &done);
}

std::chrono::steady_clock::duration busy_time() { return std::chrono::steady_clock::duration(busy.load()); }

npuError_t may_wait(const char* call) {
  if (!on_worker()) return npuSuccess;
  return fail(npuErrorNotPermitted, std::string(call) +
                                        ": called in a thread that runs the work of a stream, from a kernel or a host "
                                        "function; it could wait for itself");
}

npuError_t wait_for(const Moment& end, int device, const char* call) {
  if (!end.passed()) {
    NPU_TRY(may_wait(call));
    end.wait();
  }
  return tell_late_error(device);
}

npuError_t run_for(const Moment& end, int device, const char* call) {
  if (!is_lazy()) return wait_for(end, device, call);
  if (!end.passed()) {
    NPU_TRY(may_wait(call));
    end.queue->run_for(end.number);
  }
  return tell_late_error(device);
}

std::vector<Moment> tails_of_device(int device) {
  std::vector<Moment> tails;
  for (auto& queue : queues(device)) tails.push_back({queue, queue->submitted()});
  return tails;
}

npuError_t synchronize_device(int device, const char* call) {
  NPU_TRY(ready());
  if (has_been_late()) {
    NPU_TRY(may_wait(call));
    auto tails = tails_of_device(device);
    if (fault(Fault::device_waits_for_default_stream)) tails.resize(1);
    for (const Moment& tail : tails) tail.wait();
  }
  return tell_late_error(device);
}

Moment tail_of(npuStream_t stream) {
  std::lock_guard lock(streams().mutex);
  for (const auto& each : streams().defaults) {
    if (each.get() == stream) return {stream->queue, stream->queue->submitted()};
  }
  if (!streams().created.count(stream)) return {};
  return {stream->queue, stream->queue->submitted()};
}

void finish_before_fork() {
  if (!has_been_late() || on_worker()) return;
  for (const auto& queue : queues(-1)) queue->wait_at_most(queue->submitted(), kPatience);
}

void end_streams() {
  if (!has_been_late() || npuIsForked() || on_worker()) return;
  set_late(false);
  const auto all = queues(-1);
  for (const auto& queue : all) queue->stop();
  for (const auto& queue : all) {
    if (!queue->wait_for_end(kPatience)) break;
  }
  const std::string untold = untold_errors();
  if (!untold.empty()) std::fprintf(stderr, "refnpu: an error that no call was there to return: %s", untold.c_str());
}

}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow
using refnpu::driver::current_stream;

extern "C" {

npuError_t npuDeviceSynchronize(void) { return synchronize_device(current_device(), "npuDeviceSynchronize"); }

npuError_t npuStreamCreate(npuStream_t* stream) {
  if (!stream) return fail(npuErrorInvalidValue, "npuStreamCreate: null result pointer");
  NPU_TRY(ready());
  std::lock_guard lock(streams().mutex);
  *stream = *streams().created.insert(streams().make(current_device())).first;
  return npuSuccess;
}

npuError_t npuStreamDestroy(npuStream_t stream) {
  NPU_TRY(ready());
  NPU_TRY(may_wait("npuStreamDestroy"));
  {
    std::lock_guard lock(streams().mutex);
    if (!streams().created.erase(stream)) {
      return fail(npuErrorInvalidValue,
                  "npuStreamDestroy: " + hex(stream) + " is not a stream made by npuStreamCreate");
    }
  }
  stream->queue->wait(stream->queue->submitted());
  stream->queue->stop();
  std::vector<npuStream_t>& current = current_streams();
  std::replace(current.begin(), current.end(), stream, npuStream_t(nullptr));
  delete stream;
  return npuSuccess;
}

npuError_t npuStreamSynchronize(npuStream_t stream) {
  NPU_TRY(resolve(stream, &stream, "npuStreamSynchronize"));
  if (refnpu::fault(refnpu::Fault::stream_not_awaited)) return npuSuccess;
  return wait_for({stream->queue, stream->queue->submitted()}, stream->device, "npuStreamSynchronize");
}

npuError_t npuStreamQuery(npuStream_t stream) {
  NPU_TRY(resolve(stream, &stream, "npuStreamQuery"));
  if (refnpu::fault(refnpu::Fault::stream_query_says_done)) return npuSuccess;
  const bool starts = !is_lazy() || !refnpu::fault(refnpu::Fault::query_starts_no_recorded_work);
  if (starts) stream->queue->request(stream->queue->submitted());  // who asks again and again must see progress
  if (refnpu::fault(refnpu::Fault::stream_query_of_device)) {
    for (const auto& queue : queues(stream->device)) {
      if (!queue->idle()) return npuErrorNotReady;
    }
  }
  return stream->queue->idle() ? npuSuccess : npuErrorNotReady;
}

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
  auto& current = current_streams();
  if (current.size() < streams().defaults.size()) current.resize(streams().defaults.size());
  current[stream->device] = stream;
  return npuSuccess;
}

npuError_t npuLaunch(npuStream_t stream, const char* name, npuKernel_t kernel, const void* arguments, size_t size) {
  if (!kernel) return fail(npuErrorInvalidValue, "npuLaunch: null kernel");
  if (!arguments && size > 0) return fail(npuErrorInvalidValue, "npuLaunch: null arguments");
  NPU_TRY(ready());
  npuStream_t where = stream ? stream : streams().defaults[current_device()].get();
  if (refnpu::any_fault()) {
    if (forgets_launch()) return npuSuccess;
    if (refnpu::fault(refnpu::Fault::error_told_by_next_launch)) NPU_TRY(take_late_error(where->device));
    if (an_allocation_failed()) return fail(npuErrorOutOfMemory, std::string("kernel '") + name + "': out of memory");
    where = misdirected(where, name);
  }
  return submit(where, {name, kernel, arguments, size, Opens::everything});
}

npuError_t npuLaunchHostFunction(npuStream_t stream, npuHostFunction_t function, void* data) {
  if (!function) return fail(npuErrorInvalidValue, "npuLaunchHostFunction: null function");
  NPU_TRY(resolve(stream, &stream, "npuLaunchHostFunction"));
  return submit(stream, submission_of("host function", [=] { function(data); }));
}

npuError_t npuMarkStep(void) {
  NPU_TRY(ready());
  for (const Moment& tail : tails_of_device(current_device())) tail.queue->request(tail.number);
  return npuSuccess;
}

}  // extern "C"
