// NPUStream: a torch stream of this device as the driver knows it. c10::StreamGuard makes one current for a scope.
#pragma once

#include <c10/core/Stream.h>

#include "refnpu/guard.h"

namespace refnpu {

// torch's id of a stream is the driver's handle, and 0 for the default stream of a device.
class NPUStream {
 public:
  // Throws when the stream is of another device type.
  explicit NPUStream(c10::Stream stream) : stream_(stream) {
    TORCH_CHECK(stream.device_type() == kDevice, "expected a stream of an npu, got one of ", stream.device());
  }
  NPUStream(npuStream_t handle, c10::DeviceIndex device) : stream_(to_torch(handle, device)) {}

  c10::Stream unwrap() const { return stream_; }
  operator c10::Stream() const { return stream_; }
  c10::Device device() const { return stream_.device(); }
  c10::DeviceIndex device_index() const { return stream_.device_index(); }

  // The handle that npuLaunch and its like take.
  npuStream_t stream() const {
    if (stream_.id() != 0) return reinterpret_cast<npuStream_t>(stream_.id());
    npuStream_t handle = nullptr;
    REFNPU_CHECK(npuGetDefaultStream(&handle, stream_.device_index()));
    return handle;
  }

  // Whether all work submitted so far is done.
  bool query() const {
    const npuError_t error = npuStreamQuery(stream());
    if (error != npuErrorNotReady) REFNPU_CHECK(error);
    return error == npuSuccess;
  }
  void synchronize() const { REFNPU_CHECK(npuStreamSynchronize(stream())); }

 private:
  static c10::Stream to_torch(npuStream_t handle, c10::DeviceIndex device) {
    npuStream_t standard = nullptr;
    REFNPU_CHECK(npuGetDefaultStream(&standard, device));
    const c10::StreamId id = handle == standard ? 0 : reinterpret_cast<c10::StreamId>(handle);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, device), id);
  }

  c10::Stream stream_;
};

// A negative index stands for the current device in all of these.
inline NPUStream getCurrentNPUStream(c10::DeviceIndex device = -1) {
  if (device < 0) device = current_device();
  npuStream_t handle = nullptr;
  REFNPU_CHECK(npuGetCurrentStream(&handle, device));
  return NPUStream(handle, device);
}

inline NPUStream getDefaultNPUStream(c10::DeviceIndex device = -1) {
  if (device < 0) device = current_device();
  return NPUStream(c10::Stream(c10::Stream::DEFAULT, c10::Device(kDevice, device)));
}

// The next of the 32 streams that each device has besides its default stream.
REFNPU_API NPUStream getNewNPUStream(c10::DeviceIndex device = -1);

// Makes the stream the current one of its own device, for this thread.
inline void setCurrentNPUStream(NPUStream stream) { REFNPU_CHECK(npuSetCurrentStream(stream.stream())); }

}  // namespace refnpu
