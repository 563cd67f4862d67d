// PrivateUse1HooksInterface: devices, generators, pinned memory and storage resizing, for torch's generic code.
#include "runtime/hooks.h"

#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "refnpu/allocator.h"
#include "refnpu/fault.h"
#include "refnpu/guard.h"
#include "runtime/generator.h"
#include "runtime/host_allocator.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const REFNPU_OVERRIDE_SINCE_2_7 { return true; }
  bool isAvailable() const REFNPU_OVERRIDE_SINCE_2_7 { return device_count() > 0; }
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex device) const override {
    if (device > 0 && fault(Fault::context_of_first_device_alone)) return false;
    return npuDeviceUsed();
  }

  c10::DeviceIndex deviceCount() const override { return device_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { REFNPU_CHECK(npuSetDevice(device)); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    c10::DeviceIndex previous = current_device();
    REFNPU_CHECK(npuSetDevice(device));
    return previous;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchangeDevice(device); }

  const at::Generator& getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override {
    if (fault(Fault::new_generator_copies_default)) return default_generator(device).clone();
    return make_generator(fault(Fault::generator_made_on_current_device) ? c10::DeviceIndex(-1) : device);
  }

  bool isPinnedPtr(const void* pointer) const override { return is_pinned(pointer); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return host_allocator(); }
  c10::Device getDeviceFromPtr(void* pointer) const override {
    npuPointerAttributes attributes;
    REFNPU_CHECK(npuPointerGetAttributes(&attributes, pointer));
    TORCH_CHECK(attributes.type == npuMemoryDevice, "npu: ", pointer, " is not device memory");
    return {kDevice, static_cast<c10::DeviceIndex>(attributes.device)};
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }
};

}  // namespace

void register_hooks() {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
#if !REFNPU_HOOKS_MAKE_GENERATORS
  static at::_GeneratorRegister generators(make_generator);
#endif
}

}  // namespace refnpu
