// Streams: where work goes, in order. Today each piece runs as it is submitted; no other module may rely on that.
#pragma once

#include "driver/src/submission.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

// Null stands for the current device's default stream.
npuError_t resolve(npuStream_t stream, npuStream_t* resolved, const char* call);

npuStream_t current_stream(int device);

// Runs the work in the order of the stream, after all that was submitted to it before. The work is handed over: it may
// still be pending when this returns.
npuError_t submit(npuStream_t stream, Submission work);

npuError_t synchronize_device(int device);

}  // namespace refnpu::driver
