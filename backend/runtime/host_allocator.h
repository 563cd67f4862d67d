// Pinned host memory: page-locked on a real device, known to the driver's table on this one.
#pragma once

#include "runtime/version.h"

namespace refnpu {

HostAllocatorBase* host_allocator();
bool is_pinned(const void* pointer);

}  // namespace refnpu
