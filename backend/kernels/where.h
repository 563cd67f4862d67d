// Choosing, element by element, between two tensors of one dtype.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// nest: destination, condition (bool), taken where true, taken where false. The last two have the destination's dtype.
void where_kernel(const Nest<4>& nest);

}  // namespace refnpu
