// Faults on purpose: which one is awake, asked at the cost of one load and one compare.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace refnpu {

enum class Fault : int {
  none = 0,
#define FAULT(name, description) name,
#include "refnpu/faults.def"
#undef FAULT
};

namespace detail {
extern std::atomic<Fault> active_fault;
}

inline bool fault(Fault which) { return detail::active_fault.load(std::memory_order_relaxed) == which; }

struct FaultDescription {
  const char* name;
  const char* description;
};

const std::vector<FaultDescription>& fault_descriptions();

// Wakes the fault called `name`, or none when it is empty. Returns what is wrong with the name; empty when it is known.
std::string set_fault(std::string_view name);
std::string active_fault_name();

// What is wrong with REFNPU_FAULT, which is read once, when the library is loaded; empty when nothing is.
const std::string& fault_environment_error();

}  // namespace refnpu
