// The fallback as a call: an op on the CPU, over copies of whole storages.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace refnpu::fallback {

// Replaces the arguments on the stack by the results.
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace refnpu::fallback
