// The thread's last failure, in words.
#pragma once

#include <string>

#include "refnpu/driver.h"

namespace refnpu::driver {

// Remembers the message for npuGetLastErrorMessage and returns the code, so that a check is one line.
npuError_t fail(npuError_t code, std::string message);

std::string hex(const void* pointer);

}  // namespace refnpu::driver

#define NPU_TRY(expression)                                  \
  do {                                                       \
    npuError_t npu_try_error_ = (expression);                \
    if (npu_try_error_ != npuSuccess) return npu_try_error_; \
  } while (false)
