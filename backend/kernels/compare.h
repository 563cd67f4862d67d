// Pointwise questions about two tensors; the answers are bools.
#pragma once

#include "kernels/elementwise.h"

namespace refnpu {

enum class Compare { eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor };

// The row that answers `op` in `compute`, or nullptr when there is none (complex numbers have no order).
Row compare_row(Compare op, DType compute);

}  // namespace refnpu
