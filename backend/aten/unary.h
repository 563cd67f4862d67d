// The launch of a pointwise function of one tensor.
#pragma once

#include "aten/elementwise.h"
#include "kernels/unary.h"

namespace refnpu {

// Whether `op` gives bool: whatever the output is stored in, it is cast from there.
bool is_predicate(Unary op);

// Runs `op` over a built iterator of an output and an input that counts as `common`; `name` and `supported` are for the
// error when it has no kernel for that.
void run_unary(const char* name, at::TensorIteratorBase& iter, at::ScalarType common, Unary op, unsigned supported,
               const Params& params = {});

// The same for an op that is not structured: `out` is resized, overlap checked, nothing promoted.
at::Tensor& unary_out(const char* name, const at::Tensor& self, at::Tensor& out, Unary op, unsigned supported,
                      const Params& params = {});

}  // namespace refnpu
