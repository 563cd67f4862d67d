// How host code cuts tensors into the rows and reductions that kernels take.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <bitset>

#include "aten/plan.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"

namespace refnpu {

using DimMask = std::bitset<64>;

// The dimensions that a reduction takes: all of them when `dims` is absent or empty.
DimMask reduced_dims(at::OptionalIntArrayRef dims, int64_t ndim);
DimMask all_dims(int64_t ndim);

// The shape that is left of `self`.
c10::SmallVector<int64_t, 8> reduced_shape(const at::Tensor& self, DimMask reduced, bool keepdim);

// `value` and `index` are the outputs, shaped as reduced_shape says; either may be undefined.
Reduction reduction_of(const at::Tensor& self, DimMask reduced, bool keepdim, const at::Tensor& value,
                       const at::Tensor& index = {});

namespace detail {
void cut_into_rows(const at::Tensor& tensor, int64_t dim, int64_t* sizes, int64_t* outer_strides, int64_t& length,
                   int64_t& stride);
}

// Cuts tensors, alike in all dimensions but `dim`, into rows along it (an element is a row of a zero-dim tensor).
template <size_t K>
Rows<int(K)> rows_of(const std::array<at::Tensor, K>& tensors, int64_t dim) {
  Rows<int(K)> rows;
  rows.outer.ndim = static_cast<int>(std::max<int64_t>(tensors[0].dim() - 1, 0));
  TORCH_CHECK(rows.outer.ndim < kMaxDims, "refnpu kernels take tensors of at most ", kMaxDims, " dimensions, got ",
              tensors[0].dim());
  for (size_t k = 0; k < K; ++k) {
    rows.outer.data[k] = static_cast<char*>(const_cast<void*>(tensors[k].const_data_ptr()));
    rows.outer.dtypes[k] = to_dtype(tensors[k].scalar_type());
    detail::cut_into_rows(tensors[k], dim, rows.outer.sizes.data(), rows.outer.strides[k].data(), rows.lengths[k],
                          rows.strides[k]);
  }
  return rows;
}

// As check_has_kernel, when the tensor's dtype is none of T.
template <class... T>
void require_dtype(Types<T...>, const char* op, const at::Tensor& tensor) {
  const int type = static_cast<int>(tensor.scalar_type());
  check_has_kernel(((type == static_cast<int>(dtype_of_v<T>)) || ...), op, tensor.scalar_type());
}

}  // namespace refnpu
