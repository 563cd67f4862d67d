// A driver error becomes the exception that torch has for it.
#pragma once

#include <c10/util/Exception.h>

#include "refnpu/driver.h"

namespace refnpu {

[[noreturn]] inline void throw_driver_error(npuError_t error) {
  TORCH_CHECK_WITH(OutOfMemoryError, error != npuErrorOutOfMemory, npuGetLastErrorMessage());
  TORCH_CHECK(false, npuGetLastErrorMessage());
}

inline void check(npuError_t error) {
  if (C10_UNLIKELY(error != npuSuccess)) throw_driver_error(error);
}

}  // namespace refnpu
