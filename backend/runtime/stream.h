// How torch's streams and the driver's stand for each other: a stream's id is the driver's handle, 0 the default one.
#pragma once

#include <c10/core/Stream.h>

#include "runtime/device.h"

namespace refnpu {

inline npuStream_t to_driver(c10::Stream stream) {
  if (stream.id() != 0) return reinterpret_cast<npuStream_t>(stream.id());
  npuStream_t handle = nullptr;
  check(npuGetDefaultStream(&handle, stream.device_index()));
  return handle;
}

inline c10::Stream from_driver(npuStream_t handle, c10::DeviceIndex device) {
  npuStream_t standard = nullptr;
  check(npuGetDefaultStream(&standard, device));
  c10::StreamId id = handle == standard ? 0 : reinterpret_cast<c10::StreamId>(handle);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, device), id);
}

inline c10::Stream current_stream_of(c10::DeviceIndex device) {
  npuStream_t handle = nullptr;
  check(npuGetCurrentStream(&handle, device));
  return from_driver(handle, device);
}

// torch never says that a stream is no longer needed, so streams live as long as the process.
inline c10::Stream new_stream(c10::Device device) {
  DeviceScope scope(device.index());
  npuStream_t handle = nullptr;
  check(npuStreamCreate(&handle));
  return from_driver(handle, device.index());
}

}  // namespace refnpu
