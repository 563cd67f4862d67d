// Launches of kernels that a compiler wrote.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "refnpu/export.h"

namespace refnpu {

// An argument of a compiled kernel. Of a tensor the kernel gets the data pointer.
struct CompiledArgument {
  std::variant<at::Tensor, int64_t, double> value;
  bool written;  // points to what the kernel writes
};

// Submits the function at `entry` (an npuKernel_t) to the current stream of its tensors' device. Its argument is an
// array with 8 bytes for each of `arguments`: a pointer, an int64_t or a double. A kernel that gets host memory is done
// on return.
REFNPU_API void launch_compiled(const std::string& name, uintptr_t entry,
                                const std::vector<CompiledArgument>& arguments);

}  // namespace refnpu
