// The planted faults that a launch itself shows.
#pragma once

namespace refnpu::driver {

// Crashes, hangs or raises where a fault says so of the kernel with this name, so that the cells that fail are that
// kernel's.
void maybe_misbehave(const char* name);

// Whether a fault drops this launch: the first one of a thread, as with a context that the thread makes for itself.
bool forgets_launch();

}  // namespace refnpu::driver
