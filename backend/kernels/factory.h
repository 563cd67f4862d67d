// Tensors made of numbers alone: arithmetic and geometric sequences, the identity.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// out[i] = start + i * step. The bounds are immediates of int64 for an integral `out`, else of double.
void arange(const View& out, Immediate start, Immediate step);

// `steps` values from start to end, both included; each half is computed from its own end. Complex bounds (complex128
// immediates, as all bounds here are) only for a complex `out`.
void linspace(const View& out, Immediate start, Immediate end);
// base to the power of those.
void logspace(const View& out, Immediate start, Immediate end, double base);

// Ones on the main diagonal of a matrix; the rest is left alone.
void eye(const View& out);

}  // namespace refnpu
