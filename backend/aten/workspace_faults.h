// Faults of kernels whose results pass through a workspace that other calls use, too.
#pragma once

#include <ATen/core/Tensor.h>

namespace refnpu {

// The fault of a workspace for all streams and threads.
void pass_through_one_workspace(const at::Tensor& out);

// The fault of a workspace for all streams of a thread.
void pass_through_workspace_of_thread(const at::Tensor& out);

}  // namespace refnpu
