// Kernels on the profiler's time line: torch.profiler.profile(activities=[CPU, PrivateUse1]), where torch can be given
// a Kineto profiler for the device.
#include "runtime/version.h"

#if REFNPU_HAS_ACTIVITY_PROFILER

#include <c10/util/ApproximateClock.h>
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "refnpu/fault.h"
#include "refnpu/guard.h"

namespace refnpu {
namespace {

using libkineto::ActivityType;

struct Recorded {
  std::mutex mutex;
  std::vector<npuActivity> activities;
  bool drops_next = false;  // for fault profiler_drops_first_of_later_sessions
  std::thread::id starter;  // of the session, for fault profiler_drops_kernels_of_other_threads
};

Recorded& recorded() {
  static auto* instance = new Recorded;
  return *instance;
}

void keep(const npuActivity* activity) {
  std::lock_guard lock(recorded().mutex);
  if (recorded().activities.size() >= 1024 && fault(Fault::profiler_keeps_first_1024)) return;
  const bool other = std::this_thread::get_id() != recorded().starter;
  if (other && fault(Fault::profiler_drops_kernels_of_other_threads)) return;
  if (recorded().drops_next) {
    recorded().drops_next = false;
    return;
  }
  recorded().activities.push_back(*activity);
}

void note_starter(bool again) {
  std::lock_guard lock(recorded().mutex);
  recorded().drops_next = again && fault(Fault::profiler_drops_first_of_later_sessions);
  recorded().starter = std::this_thread::get_id();
}

std::vector<npuActivity> take_recorded() {
  std::lock_guard lock(recorded().mutex);
  return std::exchange(recorded().activities, {});
}

ActivityType type_of(const npuActivity& activity) {
  if (std::strcmp(activity.name, "memcpy") == 0) return ActivityType::GPU_MEMCPY;
  if (std::strcmp(activity.name, "memset") == 0) return ActivityType::GPU_MEMSET;
  return ActivityType::CONCURRENT_KERNEL;
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override {
    take_recorded();
    start_ns_ = c10::getTime();
    static std::atomic<bool> started{false};
    const bool again = started.exchange(true);
    note_starter(again);
    if (!again || !fault(Fault::profiler_records_first_session_alone)) REFNPU_CHECK(npuSetActivityCallback(keep));
    status_ = libkineto::TraceStatus::RECORDING;
  }

  void stop() override {
    for (c10::DeviceIndex device = 0; npuDeviceUsed() && device < device_count(); ++device) {
      if (fault(Fault::profiler_stop_leaves_last_device)) REFNPU_CHECK(npuSetDevice(device));
      NPUGuard guard(device);
      REFNPU_CHECK(npuDeviceSynchronize());
    }
    REFNPU_CHECK(npuSetActivityCallback(nullptr));
    status_ = libkineto::TraceStatus::PROCESSING;
  }

  std::vector<std::string> errors() override { return {}; }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, [](int32_t) { return nullptr; }, start_ns_, c10::getTime());
  }

  // Hands over what was recorded; the buffer owns it for as long as the trace lives. What stop() waited for is part of
  // it, though the window ended before.
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked, int64_t start_ns,
                    int64_t) override {
    buffer_ = std::make_unique<libkineto::CpuTraceBuffer>();
    buffer_->gpuOpCount = 0;
    buffer_->span = libkineto::TraceSpan(start_ns_, c10::getTime(), "Reference NPU");
    for (const npuActivity& activity : take_recorded()) {
      if (activity.end_ns < start_ns) continue;
      const auto correlation = static_cast<int32_t>(activity.correlation);
      auto entry = std::make_unique<libkineto::GenericTraceActivity>(buffer_->span, type_of(activity), activity.name);
      entry->startTime = activity.start_ns;
      entry->endTime = activity.end_ns;
      entry->device = fault(Fault::profiler_tells_first_device) ? 0 : activity.device;
      entry->resource = row_of_stream(activity.stream);
      entry->id = correlation;
      entry->linked = correlation ? linked(correlation) : nullptr;
      entry->flow.id = static_cast<uint32_t>(correlation);
      entry->flow.type = libkineto::kLinkAsyncCpuGpu;
      entry->log(logger);
      buffer_->activities.push_back(std::move(entry));
    }
  }

  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override { return nullptr; }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

  // Called in the thread of each op, around it.
  void pushCorrelationId(uint64_t id) override { npuPushCorrelation(id); }
  void popCorrelationId() override { npuPopCorrelation(); }

 private:
  // A trace names streams by small numbers.
  int32_t row_of_stream(npuStream_t stream) {
    if (fault(Fault::profiler_merges_streams)) return 0;
    const auto found = std::find(streams_.begin(), streams_.end(), stream);
    if (found != streams_.end()) return static_cast<int32_t>(found - streams_.begin());
    streams_.push_back(stream);
    return static_cast<int32_t>(streams_.size() - 1);
  }

  int64_t start_ns_ = 0;
  std::vector<npuStream_t> streams_;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
};

class ActivityProfiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return activities_; }

  std::unique_ptr<libkineto::IActivityProfilerSession> configure(const std::set<ActivityType>&,
                                                                 const libkineto::Config&) override {
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(int64_t, int64_t,
                                                                 const std::set<ActivityType>& activities,
                                                                 const libkineto::Config& config) override {
    return configure(activities, config);
  }

 private:
  std::string name_ = "refnpu";
  std::set<ActivityType> activities_ = {ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
                                        ActivityType::GPU_MEMSET};
};

REGISTER_PRIVATEUSE1_PROFILER(ActivityProfiler);

}  // namespace
}  // namespace refnpu

#endif
