// The devices of this process: how many, which is current, and what each has given out.
#pragma once

#include <string>

#include "refnpu/driver.h"

namespace refnpu::driver {

// Refuses when the environment is wrong or the process was forked after use; marks the device as used.
npuError_t ready();
npuError_t check_device(int device, const char* call);

bool an_allocation_failed();  // since the last question; always false without the fault out_of_memory_sticks
int device_count();
int current_device();
size_t capacity(int device);  // bytes

// Accounting of device memory. `reserve` refuses what would not fit in the capacity. Then either of the next two is
// called: the statistics count a block that exists, and never one that the host had no memory for.
npuError_t reserve(int device, size_t size);
void account_allocation(int device, size_t size);
void unreserve(int device, size_t size);
void account_free(int device, size_t size);

// Bytes of freed blocks that queued work still uses: no part of live_bytes, but of what the capacity limits.
void hold(int device, size_t size);
void unhold(int device, size_t size);
bool fits_only_without_held(int device, size_t size);

}  // namespace refnpu::driver
