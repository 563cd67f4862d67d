// The profiler's hook in every torch version: events of this device, which the profiler records around each op.
//
// torch.autograd.profiler.profile(use_device="npu", use_kineto=False) measures each op with them.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "refnpu/fault.h"
#include "refnpu/stream.h"

namespace refnpu {
namespace {

using torch::profiler::impl::ProfilerVoidEventStub;

void destroy_event(void* event) { npuEventDestroy(static_cast<npuEvent_t>(event)); }

struct ProfilerMethods final : torch::profiler::impl::ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    if (device) *device = current_device();
    npuEvent_t made = nullptr;
    REFNPU_CHECK(npuEventCreate(&made));
    event->reset(static_cast<void*>(made), destroy_event);
    if (cpu_ns) *cpu_ns = c10::getTime();
    const bool on_default = fault(Fault::profiler_measures_default_stream);
    const NPUStream stream = on_default ? getDefaultNPUStream() : getCurrentNPUStream();
    REFNPU_CHECK(npuEventRecord(made, stream.stream()));
  }

  // Microseconds.
  float elapsed(const ProfilerVoidEventStub* start, const ProfilerVoidEventStub* end) const override {
    float milliseconds = 0;
    const auto first = static_cast<npuEvent_t>(start->get()), second = static_cast<npuEvent_t>(end->get());
    REFNPU_CHECK(npuEventSynchronize(first));
    REFNPU_CHECK(npuEventSynchronize(second));
    REFNPU_CHECK(npuEventElapsedTime(&milliseconds, first, second));
    return fault(Fault::profiler_times_in_milliseconds) ? milliseconds : milliseconds * 1000;
  }

  // The device has no annotations of its own.
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}

  bool enabled() const override { return true; }

  void onEachDevice(std::function<void(int)> call) const override {
    for (c10::DeviceIndex device = 0; device < device_count(); ++device) {
      NPUGuard guard(device);
      call(device);
    }
  }

  void synchronize() const override { REFNPU_CHECK(npuDeviceSynchronize()); }
};

[[maybe_unused]] const bool kRegistered = [] {
  static ProfilerMethods methods;
  torch::profiler::impl::registerPrivateUse1Methods(&methods);
  return true;
}();

}  // namespace
}  // namespace refnpu
