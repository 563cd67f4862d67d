// Errors of work that nobody was waiting for: kept for the next call that waits for the device.
#pragma once

#include <string>

#include "refnpu/driver.h"

namespace refnpu::driver {

// Keeps an error. Of several errors, the first is reported in full, and the others are counted.
void keep_late_error(int device, npuError_t code, const std::string& message);

// Returns the kept error of a device and forgets it, npuSuccess if there is none.
npuError_t tell_late_error(int device);

// As tell_late_error, whichever fault is awake.
npuError_t take_late_error(int device);

// The kept errors of all devices as lines of text, for the end of the process.
std::string untold_errors();

}  // namespace refnpu::driver
