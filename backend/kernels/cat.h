// Moving elements of one dtype between places: concatenation, reversal, rotation and repetition are all this.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// to[i] = from[i] for views of one shape and element size; strides may be negative in `from`.
void move_elements(const View& from, const View& to);

// The number i as often in the vector `to` as the vector `repeats` says at i; both int32 or both int64.
void repeat_interleave(const View& repeats, const View& to);

// Sums the repeats into totals[0]; totals[1] becomes 1 when one of them is negative.
void sum_repeats(const View& repeats, int64_t* totals);

}  // namespace refnpu
