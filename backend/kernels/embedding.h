// The gradient of an embedding table.
#pragma once

#include "kernels/view.h"

namespace refnpu {

// table[indices[i]] += grad[i] for every row i of the matrix `grad`, in order, except where the index is
// `padding_index` or lies outside the table. With scale_by_frequency each row is divided by how often its index occurs.
// `indices` is a vector of int32 or int64.
void embedding_backward(const View& grad, const View& indices, const View& table, int64_t padding_index,
                        bool scale_by_frequency);

}  // namespace refnpu
