// Which operators ask for which faults.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace refnpu {

// Lets all faults sleep, and begins to collect (fault, operator) pairs: each fault that code asks for, with the
// innermost ATen operator that runs then; "" outside of all.
void start_fault_trace();

// Ends the collection. Returns the pairs, each once, in order of their names.
std::vector<std::pair<std::string, std::string>> stop_fault_trace();

}  // namespace refnpu
