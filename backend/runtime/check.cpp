#include "refnpu/check.h"

#include "refnpu/fault.h"

namespace refnpu {

void throw_driver_error(npuError_t error, const char* function, const char* file, uint32_t line) {
  const c10::SourceLocation where{function, file, line};
  const bool plain = fault(Fault::out_of_memory_as_plain_error);
  if (error == npuErrorOutOfMemory && !plain) throw c10::OutOfMemoryError(where, npuGetLastErrorMessage());
  throw c10::Error(where, npuGetLastErrorMessage());
}

}  // namespace refnpu
