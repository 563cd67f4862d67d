// Ops that look at conj and neg bits themselves, so that torch does not resolve the bits before calling them: it would
// do so with a copy, which is what these are.
#include <torch/library.h>

namespace refnpu {
namespace {

void let_through(torch::Library& m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Conjugate, m) { let_through(m); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { let_through(m); }

}  // namespace
}  // namespace refnpu
