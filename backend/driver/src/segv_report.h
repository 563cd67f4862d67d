// The line on stderr that says which block a forbidden access was nearest to.
#pragma once

namespace refnpu::driver {

// From now on a SIGSEGV is explained before whoever handled it before gets it. For modes whose memory can raise one.
void report_segv();

// What the calling thread runs, for that line; null outside kernels. Returns what it ran before.
const char* set_running_kernel(const char* name);

}  // namespace refnpu::driver
