// swiglu(gate, up) = silu(gate) * up, and its gradients, in one launch each.
#pragma once

#include "kernels/elementwise.h"

namespace refnpu {

// The rows that compute in `compute`, or nullptr when there is none: real floats only.
Row swiglu_row(DType compute);                // of (gate, up)
Row swiglu_gate_backward_row(DType compute);  // of (gradient, gate, up)
Row swiglu_up_backward_row(DType compute);    // of (gradient, gate)

}  // namespace refnpu
