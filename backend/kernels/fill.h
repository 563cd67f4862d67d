// Writing one value into every element, or into those that a mask selects.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// nest: destination. `value` holds one element of its dtype.
void fill_kernel(const Nest<1>& nest, Immediate value);

// nest: destination, mask (bool). Elements whose mask is false are not touched.
void masked_fill_kernel(const Nest<2>& nest, Immediate value);

}  // namespace refnpu
