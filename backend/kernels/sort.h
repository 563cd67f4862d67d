// Sorting rows, and picking the first of the sorted order. NaN is greater than every number.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

// Operands: input, values, indices (int64). Stable; input and values may be the same memory.
void sort_rows(const Rows<3>& rows, bool descending);
// The first rows.lengths[1] of the sorted order.
void topk_rows(const Rows<3>& rows, bool largest);
// The k-th smallest, counted from one.
void kth_rows(const Rows<3>& rows, int64_t k);

}  // namespace refnpu
