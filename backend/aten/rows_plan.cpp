// Sizes and byte strides of rows and reductions, read off tensors.
#include "aten/rows_plan.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

// The strides that a contiguous tensor of this shape has, where the fault takes a dense permuted one for that.
at::DimVector input_strides(const at::Tensor& self) {
  at::DimVector strides(self.strides());
  if (!fault(Fault::reduction_permuted_dims_wrong) || !self.is_non_overlapping_and_dense()) return strides;
  int64_t stride = 1;
  for (int64_t d = self.dim() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= self.size(d);
  }
  return strides;
}

void set_output(Reduction& r, int operand, const at::Tensor& out) {
  if (!out.defined()) return;
  r.kept.data[operand] = static_cast<char*>(out.mutable_data_ptr());
  r.kept.dtypes[operand] = to_dtype(out.scalar_type());
}

int64_t output_stride(const at::Tensor& out, int64_t dim) {
  return out.defined() ? out.stride(dim) * static_cast<int64_t>(out.element_size()) : 0;
}

}  // namespace

DimMask all_dims(int64_t ndim) { return ndim >= 64 ? ~DimMask() : DimMask((1ULL << ndim) - 1); }

DimMask reduced_dims(at::OptionalIntArrayRef dims, int64_t ndim) {
  if (!dims.has_value() || dims->empty()) return all_dims(ndim);
  return at::dim_list_to_bitset(dims, ndim);
}

c10::SmallVector<int64_t, 8> reduced_shape(const at::Tensor& self, DimMask reduced, bool keepdim) {
  c10::SmallVector<int64_t, 8> shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!reduced[d])
      shape.push_back(self.size(d));
    else if (keepdim)
      shape.push_back(1);
  }
  return shape;
}

Reduction reduction_of(const at::Tensor& self, DimMask reduced, bool keepdim, const at::Tensor& value,
                       const at::Tensor& index) {
  TORCH_CHECK(self.dim() <= kMaxDims, "refnpu kernels take tensors of at most ", kMaxDims, " dimensions, got ",
              self.dim());
  Reduction r;
  r.kept.data[0] = static_cast<char*>(const_cast<void*>(self.const_data_ptr()));
  r.kept.dtypes[0] = to_dtype(self.scalar_type());
  set_output(r, 1, value);
  set_output(r, 2, index);
  const at::DimVector strides = input_strides(self);
  const int64_t item = static_cast<int64_t>(self.element_size());
  int64_t out_dim = (value.defined() ? value : index).dim();
  for (int64_t d = self.dim() - 1; d >= 0; --d) {  // from the innermost
    if (!reduced[d] || keepdim) --out_dim;
    if (reduced[d]) continue;
    r.kept.sizes[r.kept.ndim] = self.size(d);
    r.kept.strides[0][r.kept.ndim] = strides[d] * item;
    r.kept.strides[1][r.kept.ndim] = output_stride(value, out_dim);
    r.kept.strides[2][r.kept.ndim] = output_stride(index, out_dim);
    ++r.kept.ndim;
  }
  for (int64_t d = 0; d < self.dim(); ++d) {  // from the outermost
    if (!reduced[d]) continue;
    r.sizes[r.ndim] = self.size(d);
    r.strides[r.ndim++] = strides[d] * item;
  }
  return r;
}

namespace detail {

void cut_into_rows(const at::Tensor& tensor, int64_t dim, int64_t* sizes, int64_t* outer_strides, int64_t& length,
                   int64_t& stride) {
  const int64_t item = static_cast<int64_t>(tensor.element_size());
  length = tensor.dim() > 0 ? tensor.size(dim) : 1;
  stride = tensor.dim() > 0 ? tensor.stride(dim) * item : 0;
  int k = 0;
  for (int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (d == dim) continue;
    sizes[k] = tensor.size(d);
    outer_strides[k++] = tensor.stride(d) * item;
  }
}

}  // namespace detail
}  // namespace refnpu
