// Device memory for torch's storages.
#pragma once

#include <c10/core/Storage.h>

namespace refnpu {

c10::Allocator* device_allocator();

// A storage of `nbytes` on a device, for host code that makes tensors without going through the dispatcher.
c10::Storage make_storage(size_t nbytes, c10::DeviceIndex device);

// Gives a storage new memory of `nbytes`, keeping what fits of the old contents.
void resize_storage(c10::StorageImpl* storage, size_t nbytes);

}  // namespace refnpu
