// Softmax and log-softmax along rows, and their gradients.
#pragma once

#include "kernels/rows.h"

namespace refnpu {

// Operands: input, output. Shifts each row by its largest element first.
void softmax(const Rows<2>& rows, bool log);
// Operands: gradient of the output, output, gradient of the input.
void softmax_backward(const Rows<3>& rows, bool log);

}  // namespace refnpu
