// The end of a step: recorded work starts, and donated memory is taken.
#pragma once

#include <ATen/core/Tensor.h>

#include "refnpu/export.h"

namespace refnpu {

// Starts the recorded work of a device, the current one if the index is negative, and takes the memory that was donated
// on it.
REFNPU_API void mark_step(c10::DeviceIndex device);

// Lets the next step of the tensor's device take its memory. Throws NotImplementedError where torch has no way to
// refuse the use of a tensor.
REFNPU_API void donate(const at::Tensor& tensor);

}  // namespace refnpu
