// The faults of single ops that the fallback serves. A copy of the backend needs none of them.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace refnpu::fallback {

// Runs the op on the CPU, for arguments of the host. Does so wrongly if a fault is awake that the op has.
void run_with_faults(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace refnpu::fallback
