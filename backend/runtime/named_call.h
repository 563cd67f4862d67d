// The name of the op that runs, for the errors of the work that it submits.
#pragma once

#include "refnpu/driver.h"

namespace refnpu {

// Names this thread's submissions for a scope. The name must outlive the process.
class NamedCall {
 public:
  explicit NamedCall(const char* name) : before_(npuExchangeCall(name)) {}
  ~NamedCall() { npuExchangeCall(before_); }
  NamedCall(const NamedCall&) = delete;
  NamedCall& operator=(const NamedCall&) = delete;

 private:
  const char* before_;
};

}  // namespace refnpu
