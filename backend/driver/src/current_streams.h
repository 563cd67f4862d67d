// The current streams of the calling thread.
#pragma once

#include <vector>

#include "refnpu/driver.h"

namespace refnpu::driver {

// By device; null or missing: the default stream.
std::vector<npuStream_t>& current_streams();

}  // namespace refnpu::driver
