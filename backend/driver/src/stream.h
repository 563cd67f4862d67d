// Streams: where work goes, in order. Work runs in the call that submits it, or late, in the thread of its stream; no
// other module may rely on either.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "driver/src/queue.h"
#include "driver/src/submission.h"
#include "refnpu/driver.h"

namespace refnpu::driver {

// Null stands for the current device's default stream.
npuError_t resolve(npuStream_t stream, npuStream_t* resolved, const char* call);

npuStream_t current_stream(int device);

// Runs the work in the order of the stream, after all that was submitted to it before. The work is handed over: it may
// still be pending when this returns, until `end` has passed.
npuError_t submit(npuStream_t stream, Submission work, Moment* end = nullptr);

// As submit, for work of the driver's own that nobody times and that no delay holds up.
npuError_t submit_own(npuStream_t stream, std::unique_ptr<Work> work, Moment* end = nullptr);

// How long kernels ran so far, in all streams together; counted only with fault event_times_leave_out_idle_time.
std::chrono::steady_clock::duration busy_time();

// Refuses a call that may wait for work in a thread that runs work.
npuError_t may_wait(const char* call);

// Waits, and tells the error of late work of the device.
npuError_t wait_for(const Moment& end, int device, const char* call);
// Runs the work that the piece in front of `end` needs, where work is recorded; waits for all before it otherwise.
npuError_t run_for(const Moment& end, int device, const char* call);
npuError_t synchronize_device(int device, const char* call);

// The moment after all that was submitted to the stream so far; one that has passed for a stream that lives no more.
Moment tail_of(npuStream_t stream);
std::vector<Moment> tails_of_device(int device);

// Waits for all work of the process, but not for ever; errors stay kept. Before a fork: no thread of a queue holds a
// lock then, which the child would never get.
void finish_before_fork();

// Drops the work that is left, waits for the work that runs, and prints the errors that nobody was told. At the exit of
// the process: work that ran on would use what static destructors have destroyed.
void end_streams();

}  // namespace refnpu::driver
