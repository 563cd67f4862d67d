// When submitted work runs: at once, or late and with which delay. Read from REFNPU_LATE, REFNPU_LAZY,
// REFNPU_DELAY_US and REFNPU_LAUNCH_BLOCKING, changed by npuSetLate, npuSetLazy and npuSetDelay.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace refnpu::driver {

bool is_lazy();          // work is recorded until something needs it or a step is marked; it is late, too
bool is_late();          // work is queued for the stream's thread; otherwise the submitting thread runs it
bool has_been_late();    // at any time since the process started
bool launch_blocking();  // late work is waited for by the call that submits it
void set_late(bool late);
void set_lazy(bool lazy);

// How long the work with this number waits when its turn has come. With `random:SEED` the delay depends on the seed,
// the stream's number and the work's number alone, so that a program that is run again gets the same delays.
std::chrono::microseconds delay_of(uint64_t stream, uint64_t work);

// Sets the delay of all further work: microseconds, or random:SEED. Returns the error, "" if the text is valid.
std::string set_delay(const std::string& text);

// The error in the environment variables, "" if there is none.
const std::string& schedule_environment_error();

}  // namespace refnpu::driver
