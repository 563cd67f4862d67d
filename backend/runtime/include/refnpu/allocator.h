// Device memory for torch's storages.
#pragma once

#include <c10/core/Storage.h>

#include "refnpu/export.h"

namespace refnpu {

// The allocator that torch finds under PrivateUse1. It allocates on the current device.
REFNPU_API c10::Allocator* getNPUAllocator();

// A storage of `nbytes` on a device, for host code that makes tensors without going through the dispatcher.
REFNPU_API c10::Storage make_storage(size_t nbytes, c10::DeviceIndex device);

// Gives a storage new memory of `nbytes`, keeping what fits of the old contents.
REFNPU_API void resize_storage(c10::StorageImpl* storage, size_t nbytes);

}  // namespace refnpu
