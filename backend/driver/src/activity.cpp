// The activity callback, and the call, its reads and the correlation id that each thread gives to what it submits.
#include "driver/src/activity.h"

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "driver/src/error.h"

namespace refnpu::driver {
namespace {

std::atomic<npuActivityCallback_t> callback{nullptr};
thread_local std::vector<uint64_t> correlations;
thread_local const char* running_call = "";
thread_local const npuReads* reads = nullptr;

int64_t unix_nanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

uint64_t Submission::current_correlation() { return correlations.empty() ? 0 : correlations.back(); }

const char* Submission::current_call() { return running_call; }

std::span<const void* const> Submission::current_reads() {
  return reads ? std::span(reads->pointers, reads->count) : std::span<const void* const>();
}

TimedActivity::TimedActivity(npuStream_t stream, int device, const Submission& work)
    : callback_(callback.load(std::memory_order_acquire)) {
  if (callback_) activity_ = {work.name(), device, stream, work.correlation(), unix_nanoseconds(), 0};
}

TimedActivity::~TimedActivity() {
  if (!callback_) return;
  activity_.end_ns = unix_nanoseconds();
  callback_(&activity_);
}

}  // namespace refnpu::driver

using namespace refnpu::driver;  // NOLINT: the API's own definitions follow

extern "C" {

npuError_t npuSetActivityCallback(npuActivityCallback_t function) {
  callback.store(function, std::memory_order_release);
  return npuSuccess;
}

const char* npuExchangeCall(const char* name) {
  const char* before = running_call;
  running_call = name ? name : "";
  return before;
}

const npuReads* npuExchangeReads(const npuReads* of_call) { return std::exchange(reads, of_call); }

npuError_t npuPushCorrelation(uint64_t id) {
  correlations.push_back(id);
  return npuSuccess;
}

npuError_t npuPopCorrelation(void) {
  if (correlations.empty()) return fail(npuErrorInvalidValue, "npuPopCorrelation: this thread has pushed no id");
  correlations.pop_back();
  return npuSuccess;
}

}  // extern "C"
