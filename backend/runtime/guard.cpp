// torch's device guard, streams and events, over the driver's.
#include "refnpu/guard.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include <cstring>
#include <mutex>
#include <vector>

#include "refnpu/fault.h"
#include "refnpu/stream.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

// Whether the calling thread is one of torch's for gradients.
bool computes_gradients() {
  char name[16] = "";
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::strncmp(name, "pt_autograd", 11) == 0;
}

constexpr size_t kStreams = 32;  // of each device: torch never says that a stream is no longer needed

struct StreamPool {
  std::mutex mutex;
  std::vector<std::vector<npuStream_t>> by_device;  // under `mutex`
  std::vector<size_t> taken;                        // under `mutex`: how often a stream was given out
};

StreamPool& stream_pool() {
  static auto* instance = new StreamPool;
  return *instance;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDevice;

  c10::DeviceType type() const override { return kDevice; }

  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device previous = getDevice();
    setDevice(device);
    return fault(Fault::exchange_device_returns_new) ? getDevice() : previous;
  }
  c10::Device getDevice() const override { return {kDevice, current_device()}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) REFNPU_CHECK(npuSetDevice(device.index()));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) npuSetDevice(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
#if REFNPU_HAS_MEMORY_INFO
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }  // every dtype
#endif

  c10::Stream getStream(c10::Device device) const noexcept(!REFNPU_STREAM_CALLS_MAY_THROW) override {
    if (!REFNPU_STREAM_CALLS_MAY_THROW && device_count() == 0) return c10::Stream(c10::Stream::DEFAULT, device);
    const NPUStream current = getCurrentNPUStream(device.index());
    if (!fault(Fault::default_stream_has_two_ids)) return current;
    return c10::Stream(c10::Stream::UNSAFE, current.device(), reinterpret_cast<c10::StreamId>(current.stream()));
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getDefaultNPUStream(device.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return getNewNPUStream(device.index());
  }
  c10::Stream getNewStream(c10::Device device, int) const override { return getNewNPUStream(device.index()); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept(!REFNPU_STREAM_CALLS_MAY_THROW) override {
    c10::Stream previous = getCurrentNPUStream(stream.device_index());
    if (fault(Fault::gradients_on_default_stream) && computes_gradients()) return previous;
    const npuError_t error = npuSetCurrentStream(handle_of(stream));
    if (REFNPU_STREAM_CALLS_MAY_THROW) REFNPU_CHECK(error);
    return previous;
  }
  bool queryStream(const c10::Stream& stream) const override { return NPUStream(stream).query(); }
  void synchronizeStream(const c10::Stream& stream) const override { NPUStream(stream).synchronize(); }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    NPUGuard guard(fault(Fault::current_device_synchronized) ? c10::DeviceIndex(-1) : device);
    REFNPU_CHECK(npuDeviceSynchronize());
  }

  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    if (memory.get()) REFNPU_CHECK(npuRecordStream(memory.get(), handle_of(stream)));
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) REFNPU_CHECK(npuEventCreate(reinterpret_cast<npuEvent_t*>(event)));
    if (fault(Fault::event_record_leaves_stream_current)) REFNPU_CHECK(npuSetCurrentStream(handle_of(stream)));
    REFNPU_CHECK(npuEventRecord(static_cast<npuEvent_t>(*event), handle_of(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (!event) return;
    npuStream_t waiting = handle_of(stream);
    if (fault(Fault::event_blocks_current_stream)) waiting = getCurrentNPUStream().stream();
    REFNPU_CHECK(npuStreamWaitEvent(waiting, static_cast<npuEvent_t>(event)));
  }
  bool queryEvent(void* event) const override { return !event || done(npuEventQuery(static_cast<npuEvent_t>(event))); }
  void synchronizeEvent(void* event) const override {
    if (event) REFNPU_CHECK(npuEventSynchronize(static_cast<npuEvent_t>(event)));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    npuEventDestroy(static_cast<npuEvent_t>(event));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "npu: both events must be recorded before the time between them is asked");
    float milliseconds = 0;
    REFNPU_CHECK(npuEventElapsedTime(&milliseconds, static_cast<npuEvent_t>(start), static_cast<npuEvent_t>(end)));
    return fault(Fault::events_in_seconds) ? milliseconds / 1000 : milliseconds;
  }

 private:
  static npuStream_t handle_of(const c10::Stream& stream) { return NPUStream(stream).stream(); }
  static bool done(npuError_t error) {
    if (error != npuErrorNotReady) REFNPU_CHECK(error);
    return error == npuSuccess;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace

NPUStream getNewNPUStream(c10::DeviceIndex device) {
  if (device < 0) device = current_device();
  TORCH_CHECK(device < device_count(), "npu:", int(device), " does not exist: there are ", int(device_count()),
              " devices");
  NPUGuard guard(device);
  StreamPool& pool = stream_pool();
  std::lock_guard lock(pool.mutex);
  pool.by_device.resize(device_count());
  pool.taken.resize(device_count());
  auto& streams = pool.by_device[device];
  if (streams.size() < kStreams) {
    npuStream_t made = nullptr;
    REFNPU_CHECK(npuStreamCreate(&made));
    streams.push_back(made);
  }
  if (pool.taken[device] >= kStreams && fault(Fault::stream_past_pool_is_default)) return getDefaultNPUStream(device);
  const size_t different = fault(Fault::new_streams_are_one) ? 1 : kStreams;
  return NPUStream(streams[pool.taken[device]++ % different], device);
}

}  // namespace refnpu
