// REFNPU_CHECK: a driver error becomes the exception that torch has for it, with the place of the failed call.
#pragma once

#include <c10/util/Exception.h>

#include "refnpu/driver.h"
#include "refnpu/export.h"

namespace refnpu {

// Throws torch.OutOfMemoryError for npuErrorOutOfMemory and RuntimeError for all others, with the driver's message.
[[noreturn]] REFNPU_API void throw_driver_error(npuError_t error, const char* function, const char* file,
                                                uint32_t line);

}  // namespace refnpu

// REFNPU_CHECK(npuMalloc(&pointer, size)); The C++ backtrace of the exception names the function, file and line of this
// macro (TORCH_SHOW_CPP_STACKTRACES=1 prints it).
#define REFNPU_CHECK(...)                                                                               \
  do {                                                                                                  \
    const npuError_t refnpu_error_ = (__VA_ARGS__);                                                     \
    if (C10_UNLIKELY(refnpu_error_ != npuSuccess)) {                                                    \
      ::refnpu::throw_driver_error(refnpu_error_, __func__, __FILE__, static_cast<uint32_t>(__LINE__)); \
    }                                                                                                   \
  } while (false)
