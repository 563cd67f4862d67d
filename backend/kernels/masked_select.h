// Selecting elements by a condition: how many there are, where they lie, and moving them out of and into place.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// Counts the elements of `self` that are not zero.
void count_nonzero(const View& self, int64_t* count);

// Writes the coordinates of the nonzero elements of `self`, in row-major order, one a row of the int64 matrix `out`,
// until its rows are used up.
void nonzero(const View& self, const View& out);

// `mask` (bool) and `self` have one shape; the selected elements go to the vector `out` in row-major order.
void masked_select(const View& self, const View& mask, const View& out);

// The next element of the contiguous `source` goes to each element of `self`, in row-major order, whose mask is not
// zero.
void masked_scatter(const View& self, const View& mask, const char* source);

}  // namespace refnpu
