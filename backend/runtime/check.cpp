#include "refnpu/check.h"

namespace refnpu {

void throw_driver_error(npuError_t error, const char* function, const char* file, uint32_t line) {
  const c10::SourceLocation where{function, file, line};
  if (error == npuErrorOutOfMemory) throw c10::OutOfMemoryError(where, npuGetLastErrorMessage());
  throw c10::Error(where, npuGetLastErrorMessage());
}

}  // namespace refnpu
