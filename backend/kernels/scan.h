// Scans: every element of a row replaced by what the row amounts to up to there.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

enum class Scan { sum, prod };

// Operands: input, output, of one dtype. They may be the same memory.
void scan_total(const Rows<2>& rows, Scan op);
// Operands: input, values, indices (int64). The last of equal elements wins; NaN wins over all.
void scan_extreme(const Rows<3>& rows, bool largest);

}  // namespace refnpu
