// Faults on purpose, to try a test suite with. Copy the backend without them by building with REFNPU_FAULTS=OFF, or
// delete every line that says fault(...).
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "refnpu/export.h"

#ifndef REFNPU_FAULTS
#define REFNPU_FAULTS 1
#endif

namespace refnpu {

enum class Fault : int {
  traced = -1,  // no fault is awake, and each question for one is noted
  none = 0,
#define FAULT(name, kind, description) name,
#include "refnpu/faults.def"
#undef FAULT
};

#if REFNPU_FAULTS
namespace detail {
extern std::atomic<Fault> active_fault;
bool is_awake(Fault which);
bool strikes(unsigned often);
}  // namespace detail

// Whether any fault is awake, or questions are noted.
inline bool any_fault() { return detail::active_fault.load(std::memory_order_relaxed) != Fault::none; }

// Whether `which` is awake, at the cost of one load and one compare while none is.
inline bool fault(Fault which) { return any_fault() && detail::is_awake(which); }

// Whether `which` is awake and strikes this time: once in `often` questions, by a hash of how many there were. A
// process and those that it forks count together, so that each fresh process of a run continues the series.
inline bool fault_at_random(Fault which, unsigned often) {
  return any_fault() && detail::is_awake(which) && detail::strikes(often);
}
#else
// No fault is in this build: the compiler drops what an `if` around these would do.
constexpr bool any_fault() { return false; }
constexpr bool fault(Fault) { return false; }
constexpr bool fault_at_random(Fault, unsigned) { return false; }
#endif

struct FaultDescription {
  const char* name;
  const char* description;
};

// Empty in a build without faults.
REFNPU_API const std::vector<FaultDescription>& fault_descriptions();

// Wakes the fault called `name`, or none when it is empty. Returns what is wrong with the name; empty when it is known.
REFNPU_API std::string set_fault(std::string_view name);
REFNPU_API std::string active_fault_name();

// As fault(), by the fault's name, for code that is not C++. False for an unknown name, and in a build without faults.
REFNPU_API bool fault_called(std::string_view name);

// Lets all faults sleep, and calls `note` with the name of each that code asks for, until set_fault is called. `note`
// is called by the thread that asks. Does nothing in a build without faults.
REFNPU_API void trace_faults(void (*note)(const char* name));

// What is wrong with REFNPU_FAULT, which is read once, when the library is loaded; empty when nothing is.
const std::string& fault_environment_error();

}  // namespace refnpu
