// Error codes' names and the thread-local message of the last failure.
#include "driver/src/error.h"

#include <cstdio>
#include <utility>

#include "refnpu/fault.h"

namespace refnpu::driver {
namespace {
thread_local std::string last_message;
}

npuError_t fail(npuError_t code, std::string message) {
  if (!last_message.empty() && fault(Fault::error_message_of_first_failure)) return code;
  last_message = std::string(npuGetErrorName(code)) + ": " + std::move(message);
  return code;
}

std::string hex(const void* pointer) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", pointer);
  return text;
}

}  // namespace refnpu::driver

extern "C" const char* npuGetErrorName(npuError_t error) {
  switch (error) {
    case npuSuccess:
      return "success";
    case npuErrorInvalidValue:
      return "invalid value";
    case npuErrorInvalidDevice:
      return "invalid device";
    case npuErrorOutOfMemory:
      return "out of memory";
    case npuErrorUntrackedPointer:
      return "untracked pointer";
    case npuErrorDoubleFree:
      return "double free";
    case npuErrorBadDirection:
      return "bad copy direction";
    case npuErrorOutOfBounds:
      return "out of bounds";
    case npuErrorLaunchFailure:
      return "launch failure";
    case npuErrorNotReady:
      return "not ready";
    case npuErrorForked:
      return "forked after device use";
    case npuErrorConfiguration:
      return "bad configuration";
    case npuErrorDamagedMemory:
      return "damaged memory";
    case npuErrorNotPermitted:
      return "not permitted";
  }
  return "unknown error";
}

extern "C" const char* npuGetLastErrorMessage(void) { return refnpu::driver::last_message.c_str(); }
