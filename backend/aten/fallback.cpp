// Ops without a native kernel: run on the CPU over copies of whole storages.
#include <ATen/native/CPUFallback.h>

#include "aten/register.h"

namespace refnpu {
namespace {
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& name = op.operator_name();
  counter(Route::fallback, (name.overload_name.empty() ? name.name : name.name + "." + name.overload_name).substr(6)).add();
  fallback_total.add();
  at::native::cpu_fallback(op, stack);
}
}  // namespace
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
}  // namespace refnpu
