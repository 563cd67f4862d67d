// Telling a profiler which work ran where, and when.
#pragma once

#include "driver/src/submission.h"

namespace refnpu::driver {

// Times the work between its construction and its destruction, and tells the callback of npuSetActivityCallback.
// Costs one load while no callback is set.
class TimedActivity {
 public:
  TimedActivity(npuStream_t stream, int device, const Submission& work);
  ~TimedActivity();
  TimedActivity(const TimedActivity&) = delete;
  TimedActivity& operator=(const TimedActivity&) = delete;

 private:
  npuActivityCallback_t callback_;
  npuActivity activity_;
};

}  // namespace refnpu::driver
