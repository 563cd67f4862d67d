// The current device: asking for it, and changing it for a scope. c10::DeviceGuard works too; NPUGuard is cheaper.
#pragma once

#include <c10/core/Device.h>

#include "refnpu/check.h"

namespace refnpu {

inline constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

inline c10::DeviceIndex current_device() {
  int index = 0;
  REFNPU_CHECK(npuGetDevice(&index));
  return static_cast<c10::DeviceIndex>(index);
}

inline c10::DeviceIndex device_count() {
  int count = 0;
  REFNPU_CHECK(npuGetDeviceCount(&count));
  return static_cast<c10::DeviceIndex>(count);
}

// `npu` without an index means the current device.
inline c10::Device with_index(c10::Device device) {
  return device.has_index() ? device : c10::Device(kDevice, current_device());
}

// Makes a device current for a scope. A negative index changes nothing.
class NPUGuard {
 public:
  explicit NPUGuard(c10::DeviceIndex index) : original_(current_device()) {
    if (index >= 0 && index != original_) REFNPU_CHECK(npuSetDevice(index));
  }
  explicit NPUGuard(c10::Device device) : NPUGuard(device.index()) {}
  ~NPUGuard() { npuSetDevice(original_); }
  NPUGuard(const NPUGuard&) = delete;
  NPUGuard& operator=(const NPUGuard&) = delete;

  // Makes another device current until the scope ends.
  void set_index(c10::DeviceIndex index) { REFNPU_CHECK(npuSetDevice(index)); }
  c10::Device original_device() const { return {kDevice, original_}; }

 private:
  c10::DeviceIndex original_;
};

}  // namespace refnpu
