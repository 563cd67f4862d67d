// Moving elements from one view to another, with or without a change of dtype.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// Converts `n` elements from `from` (byte stride `from_stride`) to `to`, with the rules of convert<To>(From).
using CastRow = void (*)(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n);

// The cast between two dtypes; between equal ones it moves bytes.
CastRow cast_row(DType to, DType from);

// What a fault that is awake makes of a copy between two dtypes; null where none does.
CastRow mistaken_cast(DType to, DType from);

// nest: destination, source.
void copy_kernel(const Nest<2>& nest);

}  // namespace refnpu
