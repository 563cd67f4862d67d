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

// Lets all faults sleep, and begins to collect the faults that code asks for, in this process and in those that it
// forks from now on. Ends with set_fault. Throws std::system_error where there is no memory for it.
void share_fault_trace();

// Returns the faults that code asked for since the last call, and forgets them.
std::vector<std::string> take_fault_trace();

}  // namespace refnpu
