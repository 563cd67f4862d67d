// Streams: where work goes, in order. Today each piece runs as it is submitted; nobody but this module may know.
#pragma once

#include <functional>

#include "refnpu/driver.h"

namespace refnpu::driver {

// Null stands for the current device's default stream.
npuError_t resolve(npuStream_t stream, npuStream_t* resolved, const char* call);

npuStream_t current_stream(int device);

// Runs `work`, which opens the device memory that it touches, in the order of the stream, after all that was submitted
// to it before.
npuError_t submit(npuStream_t stream, const char* name, const std::function<void()>& work);

npuError_t synchronize_device(int device);

}  // namespace refnpu::driver
