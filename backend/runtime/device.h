// The current device, as torch's side of the backend asks for it and changes it.
#pragma once

#include <c10/core/Device.h>

#include "runtime/check.h"

namespace refnpu {

inline constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

inline c10::DeviceIndex current_device() {
  int index = 0;
  check(npuGetDevice(&index));
  return static_cast<c10::DeviceIndex>(index);
}

inline c10::DeviceIndex device_count() {
  int count = 0;
  check(npuGetDeviceCount(&count));
  return static_cast<c10::DeviceIndex>(count);
}

// `npu` without an index means the current device.
inline c10::Device with_index(c10::Device device) {
  return device.has_index() ? device : c10::Device(kDevice, current_device());
}

// Makes a device current for a scope. A negative index changes nothing.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) : previous_(current_device()) {
    if (index >= 0 && index != previous_) check(npuSetDevice(index));
  }
  ~DeviceScope() { npuSetDevice(previous_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex previous_;
};

}  // namespace refnpu
