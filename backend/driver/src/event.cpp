// Events: marks in the work of a stream, which other streams and the host can wait for.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "driver/src/error.h"
#include "driver/src/schedule.h"
#include "driver/src/stream.h"
#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {

using Clock = std::chrono::steady_clock;

// One recording of an event. Who waits for it is not moved when the event is recorded again.
struct Mark {
  Moment reached;
  int device = -1;
  std::atomic<bool> gone{false};        // with fault event_destroyed_is_not_awaited, when the event is destroyed
  std::atomic<bool> awaited{false};     // with fault event_done_until_awaited, when somebody has synchronized it
  std::atomic<Clock::duration> when{};  // since the clock's epoch; set when the stream gets there

  bool passed() const { return reached.passed(); }
};

int device_of(npuStream_t stream) {
  int device = -1;
  npuStreamGetDevice(stream, &device);
  return device;
}

// The fault of a stream that remembers which events it has waited for, and not which recordings.
struct Waited {
  std::mutex mutex;
  std::set<std::pair<npuStream_t, npuEvent_t>> pairs;  // under `mutex`
};

Waited& waited() {
  static auto* instance = new Waited;
  return *instance;
}

bool waited_before(npuStream_t stream, npuEvent_t event) {
  std::lock_guard lock(waited().mutex);
  return !waited().pairs.emplace(stream, event).second;
}

void forget_waits(npuEvent_t event) {
  std::lock_guard lock(waited().mutex);
  std::erase_if(waited().pairs, [=](const auto& pair) { return pair.second == event; });
}

// The fault of a stream that has room for one event to wait for: the next one takes its place.
std::shared_ptr<std::atomic<bool>> replace_last_wait(npuStream_t stream) {
  static auto* mutex = new std::mutex;
  static auto* last = new std::map<npuStream_t, std::shared_ptr<std::atomic<bool>>>;
  std::lock_guard lock(*mutex);
  auto& dropped = (*last)[stream];
  if (dropped) *dropped = true;
  return dropped = std::make_shared<std::atomic<bool>>(false);
}

npuError_t default_stream_beside(npuStream_t stream, npuStream_t* found) {
  return npuGetDefaultStream(found, device_of(stream));
}

}  // namespace
}  // namespace refnpu::driver

struct npuEvent_st {
  std::mutex mutex;
  std::shared_ptr<refnpu::driver::Mark> mark;  // under `mutex`; null before the first recording
  npuStream_t first = nullptr;                 // under `mutex`; what fault event_stays_on_first_stream keeps

  std::shared_ptr<refnpu::driver::Mark> get() {
    std::lock_guard lock(mutex);
    return mark;
  }
};

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow
using refnpu::fault, refnpu::Fault;

extern "C" {

npuError_t npuEventCreate(npuEvent_t* event) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventCreate: null result pointer");
  *event = new npuEvent_st;
  return npuSuccess;
}

npuError_t npuEventDestroy(npuEvent_t event) {
  if (refnpu::any_fault()) forget_waits(event);
  if (event && fault(Fault::event_destroyed_is_not_awaited)) {
    if (const auto mark = event->get()) mark->gone = true;
  }
  delete event;
  return npuSuccess;
}

npuError_t npuEventRecord(npuEvent_t event, npuStream_t stream) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventRecord: null event");
  NPU_TRY(resolve(stream, &stream, "npuEventRecord"));
  if (fault(Fault::event_recorded_on_default_stream)) NPU_TRY(default_stream_beside(stream, &stream));
  if (fault(Fault::event_stays_on_first_stream)) {
    std::lock_guard lock(event->mutex);
    if (!event->first) event->first = stream;
    stream = event->first;
  }
  auto mark = std::make_shared<Mark>();
  mark->device = device_of(stream);
  const bool early = fault(Fault::event_time_of_recording);
  if (early) mark->when = Clock::now().time_since_epoch();
  const bool busy = fault(Fault::event_times_leave_out_idle_time);
  auto reach = [=] {
    if (!early) mark->when = busy ? busy_time() : Clock::now().time_since_epoch();
  };
  NPU_TRY(submit_own(stream, work_of(std::move(reach)), &mark->reached));
  if (fault(Fault::event_reached_early)) mark->reached.number /= 2;
  std::lock_guard lock(event->mutex);
  if (event->mark && fault(Fault::event_keeps_first_recording)) return npuSuccess;
  event->mark = std::move(mark);
  return npuSuccess;
}

npuError_t npuEventQuery(npuEvent_t event) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventQuery: null event");
  const auto mark = event->get();
  const bool starts = !is_lazy() || !fault(Fault::query_starts_no_recorded_work);
  if (mark && mark->reached.queue && starts) mark->reached.queue->request(mark->reached.number);
  if (mark && mark->awaited) return npuErrorNotReady;
  return !mark || mark->passed() || fault(Fault::event_query_says_done) ? npuSuccess : npuErrorNotReady;
}

npuError_t npuEventSynchronize(npuEvent_t event) {
  if (!event) return fail(npuErrorInvalidValue, "npuEventSynchronize: null event");
  const auto mark = event->get();
  if (!mark || fault(Fault::event_not_awaited)) return npuSuccess;
  if (fault(Fault::event_done_until_awaited)) mark->awaited = true;
  return wait_for(mark->reached, mark->device, "npuEventSynchronize");
}

npuError_t npuStreamWaitEvent(npuStream_t stream, npuEvent_t event) {
  if (!event) return fail(npuErrorInvalidValue, "npuStreamWaitEvent: null event");
  NPU_TRY(resolve(stream, &stream, "npuStreamWaitEvent"));
  const auto mark = event->get();
  if (!mark || mark->passed() || fault(Fault::wait_event_ignored)) return npuSuccess;
  if (fault(Fault::event_waited_for_once) && waited_before(stream, event)) return npuSuccess;
  if (fault(Fault::wait_event_of_other_device_ignored) && mark->device != device_of(stream)) return npuSuccess;
  if (fault(Fault::second_wait_forgets_first)) {
    return submit_own(stream, work_of([mark, dropped = replace_last_wait(stream)] {
                        if (mark->reached.queue) mark->reached.queue->request(mark->reached.number);
                        while (!mark->passed() && !*dropped)
                          std::this_thread::sleep_for(std::chrono::microseconds(200));
                      }));
  }
  return submit_own(stream, work_of([mark] {
                      if (!mark->gone) mark->reached.wait();
                    }));
}

npuError_t npuEventElapsedTime(float* milliseconds, npuEvent_t start, npuEvent_t end) {
  if (!milliseconds || !start || !end) return fail(npuErrorInvalidValue, "npuEventElapsedTime: null argument");
  const auto first = start->get(), second = end->get();
  if (!first || !second) {
    return fail(npuErrorInvalidValue, "npuEventElapsedTime: both events must have been recorded");
  }
  if (first->device != second->device) {
    return fail(npuErrorInvalidValue, "npuEventElapsedTime: events of npu:" + std::to_string(first->device) +
                                          " and npu:" + std::to_string(second->device));
  }
  if (!first->passed() || !second->passed()) {
    return fail(npuErrorNotReady, "npuEventElapsedTime: an event is still pending; synchronize it first");
  }
  if (fault(Fault::event_times_in_whole_milliseconds)) {
    const auto between = second->when.load() - first->when.load();
    *milliseconds = static_cast<float>(std::chrono::duration_cast<std::chrono::milliseconds>(between).count());
    return npuSuccess;
  }
  if (second->when.load() < first->when.load() && fault(Fault::event_time_backwards_is_unsigned)) {
    const auto between = std::chrono::duration_cast<std::chrono::nanoseconds>(second->when.load() - first->when.load());
    *milliseconds = static_cast<float>(static_cast<uint64_t>(between.count())) * 1e-6f;
    return npuSuccess;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(second->when.load() - first->when.load()).count();
  return npuSuccess;
}

}  // extern "C"
