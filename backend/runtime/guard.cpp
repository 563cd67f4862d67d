// torch's device guard, streams and events, over the driver's.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "runtime/device.h"
#include "runtime/stream.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDevice;

  c10::DeviceType type() const override { return kDevice; }

  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device previous = getDevice();
    setDevice(device);
    return previous;
  }
  c10::Device getDevice() const override { return {kDevice, current_device()}; }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) check(npuSetDevice(device.index()));
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) npuSetDevice(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
#if REFNPU_HAS_MEMORY_INFO
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }  // every dtype
#endif

  c10::Stream getStream(c10::Device device) const noexcept override {
    return current_stream_of(with_index(device).index());
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, with_index(device));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return new_stream(with_index(device));
  }
  c10::Stream getNewStream(c10::Device device, int) const override { return new_stream(with_index(device)); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    c10::Stream previous = current_stream_of(stream.device_index());
    npuSetCurrentStream(to_driver(stream));
    return previous;
  }
  bool queryStream(const c10::Stream& stream) const override { return done(npuStreamQuery(to_driver(stream))); }
  void synchronizeStream(const c10::Stream& stream) const override { check(npuStreamSynchronize(to_driver(stream))); }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    DeviceScope scope(device);
    check(npuDeviceSynchronize());
  }

  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) check(npuEventCreate(reinterpret_cast<npuEvent_t*>(event)));
    check(npuEventRecord(static_cast<npuEvent_t>(*event), to_driver(stream)));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) check(npuStreamWaitEvent(to_driver(stream), static_cast<npuEvent_t>(event)));
  }
  bool queryEvent(void* event) const override { return !event || done(npuEventQuery(static_cast<npuEvent_t>(event))); }
  void synchronizeEvent(void* event) const override {
    if (event) check(npuEventSynchronize(static_cast<npuEvent_t>(event)));
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    npuEventDestroy(static_cast<npuEvent_t>(event));
  }
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "npu: both events must be recorded before the time between them is asked");
    float milliseconds = 0;
    check(npuEventElapsedTime(&milliseconds, static_cast<npuEvent_t>(start), static_cast<npuEvent_t>(end)));
    return milliseconds;
  }

 private:
  static bool done(npuError_t error) {
    if (error != npuErrorNotReady) check(error);
    return error == npuSuccess;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

}  // namespace
}  // namespace refnpu
