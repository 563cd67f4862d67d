// What depends on a matrix's diagonals: the triangles above and below one, the coordinates in them, the trace.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// Copies the upper (j - i >= k) or lower (j - i <= k) triangle of the last two dimensions and zeroes the rest.
// `self` and `out` have one shape and dtype and may be the same memory.
void triangle(const View& self, const View& out, int64_t k, bool upper);

// The same triangle's coordinates in a rows x columns matrix, row by row: out[0] the rows, out[1] the columns (int32,
// int64).
void triangle_indices(const View& out, int64_t rows, int64_t columns, int64_t k, bool upper);

// The sum of a matrix's main diagonal into one element of `out` (int64 for integers, else the matrix's own dtype).
void trace(const View& self, DType out_dtype, char* out);

}  // namespace refnpu
