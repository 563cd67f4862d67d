// Hands index tensors to kernels; see the header.
#include "aten/index_nest.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "aten/plan.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu {

at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

at::Tensor make_cells(const at::Tensor& like, int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kLong).device(like.device()));
}

std::vector<int64_t> read_cells(const at::Tensor& cells) {
  const at::Tensor host = cells.cpu();
  const int64_t* first = host.const_data_ptr<int64_t>();
  return std::vector<int64_t>(first, first + host.numel());
}

// The fault of a report that is not cleared once it was read.
std::vector<int64_t> with_earlier(std::vector<int64_t> report) {
  thread_local std::vector<int64_t> earlier{0, 0};
  const bool sticks = earlier[0] != 0;
  std::swap(earlier, report);
  if (sticks) earlier = {0, 0};
  return sticks ? report : earlier;
}

void check_bounds(const char* op, const at::Tensor& index, int64_t size, bool negative_allowed, Bounds thrown) {
  if (fault(Fault::bounds_not_checked) || index.numel() == 0) return;
  const at::Tensor cells = make_cells(index, 2);
  auto* bad = reinterpret_cast<BadIndex*>(cells.mutable_data_ptr<int64_t>());
  const View view = view_of(index);
  launch("index_check", [=] {
    *bad = {};
    index_check(view, size, negative_allowed, bad);
  });
  std::vector<int64_t> report = read_cells(cells);
  if (fault(Fault::index_error_sticks)) report = with_earlier(report);
  if (report[0] == 0) return;
  if (thrown == Bounds::index_error) {
    TORCH_CHECK_INDEX(false, op, ": index ", report[1], " is out of bounds for dimension with size ", size);
  }
  TORCH_CHECK(false, op, ": index ", report[1], " is out of bounds for dimension with size ", size);
}

at::Tensor expand_along(const at::Tensor& index, const at::Tensor& like, int64_t dim) {
  const at::Tensor target = at_least_1d(like);
  at::DimVector sizes(target.sizes()), strides(target.dim(), 0);
  sizes[dim] = index.numel();
  strides[dim] = index.dim() == 0 ? 1 : index.stride(0);
  return index.as_strided(sizes, strides);
}

namespace {

IndexOperand index_operand(const at::Tensor& index, int64_t size, int64_t stride) {
  IndexOperand operand;
  const View view = view_of(index);
  operand.data = view.data;
  operand.dtype = view.dtype;
  for (int d = 0; d < view.ndim; ++d) operand.strides[d] = view.strides[view.ndim - 1 - d];
  operand.size = size;
  operand.stride = stride;
  return operand;
}

}  // namespace

IndexedNest nest_along(const at::Tensor& plain, const at::Tensor& indexed, const at::Tensor& index, int64_t dim) {
  const at::Tensor walked = at_least_1d(index);
  const View target = view_of(at_least_1d(indexed));
  IndexedNest nest;
  nest.ndim = static_cast<int>(walked.dim());
  nest.indexed = target.data;
  for (int d = 0; d < nest.ndim; ++d) {
    const int from = nest.ndim - 1 - d;
    nest.sizes[d] = walked.size(from);
    nest.indexed_strides[d] = from == dim ? 0 : target.strides[from];
  }
  nest.index_count = 1;
  nest.indices[0] = index_operand(walked, target.sizes[dim], target.strides[dim]);
  if (!plain.defined()) return nest;
  const View values = view_of(at_least_1d(plain));
  nest.plain = values.data;
  for (int d = 0; d < nest.ndim; ++d) nest.plain_strides[d] = values.strides[nest.ndim - 1 - d];
  return nest;
}

IndexedNest nest_of_iterator(const at::TensorIteratorBase& iter, int plain, int indexed, at::IntArrayRef sizes,
                             at::IntArrayRef strides) {
  TORCH_CHECK(iter.ndim() <= kMaxDims, "refnpu indexes over at most ", kMaxDims, " dimensions, got ", iter.ndim());
  IndexedNest nest;
  nest.ndim = iter.ndim();
  nest.plain = static_cast<char*>(iter.data_ptr(plain));
  nest.indexed = static_cast<char*>(iter.data_ptr(indexed));
  const auto copy_strides = [&](int operand, std::array<int64_t, kMaxDims>& to) {
    std::copy_n(iter.strides(operand).begin(), nest.ndim, to.begin());
  };
  std::copy_n(iter.shape().begin(), nest.ndim, nest.sizes.begin());
  copy_strides(plain, nest.plain_strides);
  copy_strides(indexed, nest.indexed_strides);
  nest.index_count = iter.ntensors() - 2;
  for (int k = 2; k < iter.ntensors(); ++k) {
    IndexOperand& operand = nest.indices[k - 2];
    operand.data = static_cast<const char*>(iter.data_ptr(k));
    operand.dtype = to_dtype(iter.dtype(k));
    copy_strides(k, operand.strides);
    operand.size = sizes[k - 2];
    operand.stride = strides[k - 2];
  }
  return nest;
}

Immediate element_of(const c10::Scalar& value, c10::ScalarType type) {
  const at::Tensor host = at::empty({}, at::TensorOptions().dtype(type).device(at::kCPU)).fill_(value);
  Immediate element;
  std::memcpy(element.bytes.data(), host.const_data_ptr(), host.element_size());
  return element;
}

void require_same_device(const char* op, std::initializer_list<at::Tensor> tensors) {
  const c10::Device device = tensors.begin()->device();
  const bool by_type = fault(Fault::devices_compared_by_type);
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const bool same = by_type ? tensor.device().type() == device.type() : tensor.device() == device;
    TORCH_CHECK(same, op, ": Expected all tensors to be on the same device, got ", device, " and ", tensor.device());
  }
}

at::Tensor misread_as_dense(const at::Tensor& tensor) {
  at::Tensor dense = at::zeros(tensor.sizes(), tensor.options());
  const int64_t stored = int64_t(tensor.storage().nbytes() / tensor.element_size()) - tensor.storage_offset();
  const int64_t read = std::min(stored, tensor.numel());
  dense.view(-1).narrow(0, 0, read).copy_(tensor.as_strided({read}, {1}));
  return dense;
}

}  // namespace refnpu
