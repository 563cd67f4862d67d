// Indexing by lists of index tensors, and by one vector along a dimension.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros_like.h>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::indexing {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

void check_all_bounds(const char* op, const at::TensorIteratorBase& iter, at::IntArrayRef sizes) {
  for (int k = 2; k < iter.ntensors(); ++k) {
    check_bounds(op, iter.tensor(k), sizes[k - 2], true, Bounds::index_error);
  }
}

// The fault of a kernel that takes index tensors for dense.
void forget_index_strides(IndexedNest& nest) {
  for (int k = 0; k < nest.index_count; ++k) {
    IndexOperand& operand = nest.indices[k];
    int64_t stride = size_of(operand.dtype);
    for (int d = 0; d < nest.ndim; ++d) {
      if (operand.strides[d] == 0) continue;
      operand.strides[d] = std::min(stride, operand.strides[d]);  // never further than the memory there is
      stride *= nest.sizes[d];
    }
  }
}

// The fault of scratch memory that is not given back where an index is out of bounds.
void keep_block_of_error(const at::Tensor& self, const at::TensorIteratorBase& iter, at::IntArrayRef sizes) {
  c10::Storage scratch = at::empty({16}, self.options()).storage();
  try {
    check_all_bounds("index", iter, sizes);
  } catch (const std::exception&) {
    scratch.unsafeReleaseStorageImpl();
    throw;
  }
}

at::Tensor& index_out(const at::Tensor& self, const OptionalTensors& indices, at::Tensor& out) {
  Structured<at::meta::structured_index_Tensor> op(out);
  const auto strided = op.meta(self, at::IOptTensorListRef(indices));
  if (op.numel() == 0) return out;
  if (fault(Fault::index_error_keeps_block)) {
    keep_block_of_error(self, op, strided.sizes);
  }
  check_all_bounds("index", op, strided.sizes);
  IndexedNest nest = nest_of_iterator(op, 0, 1, strided.sizes, strided.strides);
  if (fault(Fault::index_ignores_stride_of_index)) forget_index_strides(nest);
  if (fault(Fault::index_ignores_fourth_tensor)) nest.index_count = std::min(nest.index_count, 3);
  const int64_t size = self.element_size();
  launch("index", [=] { index_read(nest, size); });
  return out;
}

// A tensor, and the index tensors that stand for some of its adjacent dimensions.
struct Indexed {
  at::Tensor restrided;  // self with the shape of the result; stride 0 where an index moves it
  std::vector<at::Tensor> indices;
  at::DimVector sizes, strides;  // of the indexed dimensions; strides in bytes
};

// Masks become coordinates, all indices one shape, the indexed dimensions adjacent.
std::pair<at::Tensor, std::vector<at::Tensor>> normalize(at::Tensor self, const OptionalTensors& given) {
  at::native::checkIndexTensorTypes(at::IOptTensorListRef(given), /*allow_int=*/true);
  std::vector<at::Tensor> indices = at::native::expandTensors(self, at::IOptTensorListRef(given));
  try {
    indices = at::expand_outplace(indices);
  } catch (const std::exception&) {
    TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together");
  }
  indices.resize(std::max<size_t>(indices.size(), self.dim()));
  if (!at::native::hasContiguousSubspace(indices) && !fault(Fault::index_put_separate_indices_stay)) {
    std::tie(self, indices) = at::native::transposeToFront(self, indices);
  }
  for (at::Tensor& index : indices) {
    if (!index.defined()) continue;
    const bool forgotten = index.is_cpu() && fault(Fault::index_put_host_index_not_copied);
    const at::Tensor given = forgotten ? at::zeros_like(index, self.options().dtype(at::kLong)) : index;
    index = given.to(self.device(), at::kLong);
  }
  return {self, indices};
}

Indexed plan_indices(const at::Tensor& given_self, const OptionalTensors& given) {
  const auto [self, all] = normalize(given_self, given);
  Indexed plan;
  at::DimVector sizes, strides;
  int64_t before = 0;
  at::IntArrayRef shape;
  const auto add_broadcast_shape = [&](at::IntArrayRef of_index) {
    shape = of_index;
    before = int64_t(sizes.size());
    sizes.append(shape.begin(), shape.end());
    strides.append(shape.size(), 0);
  };
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!all[d].defined()) {
      sizes.push_back(self.size(d));
      strides.push_back(self.stride(d));
      continue;
    }
    if (plan.indices.empty()) add_broadcast_shape(all[d].sizes());
    plan.indices.push_back(all[d]);
    plan.sizes.push_back(self.size(d));
    plan.strides.push_back(self.stride(d) * self.element_size());
  }
  const bool nothing_to_index = std::find(plan.sizes.begin(), plan.sizes.end(), 0) != plan.sizes.end();
  TORCH_CHECK_INDEX(!nothing_to_index || c10::multiply_integers(shape) == 0,
                    "index is out of bounds for dimension with size 0");
  plan.restrided = self.as_strided(sizes, strides);
  for (at::Tensor& index : plan.indices) {
    at::DimVector view(before, 1);
    view.append(index.sizes().begin(), index.sizes().end());
    view.append(sizes.size() - view.size(), 1);
    index = index.reshape(view);
  }
  return plan;
}

at::TensorIterator iterate(const Indexed& plan, const at::Tensor& value) {
  TORCH_CHECK(at::is_expandable_to(value.sizes(), plan.restrided.sizes()), "shape mismatch: value tensor of shape ",
              value.sizes(), " cannot be broadcast to indexing result of shape ", plan.restrided.sizes());
  TORCH_CHECK(value.scalar_type() == plan.restrided.scalar_type(),
              "Index put requires the source and destination dtypes match, got ", plan.restrided.scalar_type(),
              " for the destination and ", value.scalar_type(), " for the source.");
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).check_all_same_dtype(false);
  config.add_output(plan.restrided).add_const_input(value);
  for (const at::Tensor& index : plan.indices) config.add_const_input(index);
  return config.build();
}

// The fault of values that are broadcast by starting anew with the first of them when they have all been taken.
at::Tensor cycled(const at::Tensor& values, at::IntArrayRef sizes) {
  const int64_t count = c10::multiply_integers(sizes), given = values.numel();
  if (given < 2 || given >= count || !at::is_expandable_to(values.sizes(), sizes)) return values;
  return values.reshape({-1}).repeat({(count + given - 1) / given}).narrow(0, 0, count).view(sizes);
}

// The fault of a mask of bytes that is taken for indices.
OptionalTensors bytes_as_indices(const OptionalTensors& given) {
  OptionalTensors indices;
  for (const std::optional<at::Tensor>& index : given) {
    const bool of_bytes = index && index->defined() && index->scalar_type() == at::kByte;
    indices.push_back(of_bytes ? std::optional(index->to(at::kLong)) : index);
  }
  return indices;
}

// Whether a mask of the first dims of a tensor fits its last ones as well.
bool is_mask_of_last_dims(const at::Tensor& self, const OptionalTensors& indices) {
  if (indices.size() != 1) return false;
  const at::Tensor mask = indices.get(0).value_or(at::Tensor());
  return mask.scalar_type() == at::kBool && mask.device() == self.device() && mask.dim() < self.dim() &&
         at::is_expandable_to(mask.sizes(), self.sizes());
}

at::Tensor& index_put_impl_(at::Tensor& self, const OptionalTensors& indices, const at::Tensor& value, bool accumulate,
                            bool unsafe) {
  TORCH_CHECK_INDEX(indices.size() <= static_cast<size_t>(self.dim()), "too many indices for tensor of dimension ",
                    self.dim(), " (got ", indices.size(), ")");
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
  }
  if (!accumulate && value.numel() == 1) {
    const auto [is_fill, mask] = at::native::canDispatchToMaskedFill(self, indices, value.cpu());
    if (is_fill && fault(Fault::row_mask_along_last_dim) && is_mask_of_last_dims(self, indices))
      return self.masked_fill_(indices.get(0).value(), value.item());
    if (is_fill) return self.masked_fill_(mask, value.item());
  }
  const bool from_host = value.device() != self.device() && value.dim() == 0;
  const at::Tensor source = from_host ? value.to(self.device()) : value;
  if (!accumulate || !fault(Fault::index_put_adds_overlapping_values)) at::assert_no_overlap(self, value);
  for (const std::optional<at::Tensor>& index : indices) {
    if (index.has_value()) at::assert_no_overlap(self, *index);
  }
  if (from_host && fault(Fault::index_put_host_number_not_added)) accumulate = false;
  if (accumulate && fault(Fault::index_put_accumulate_races)) {
    return index_put_impl_(self, indices, at::index(self, indices).add(source), false, unsafe);
  }
  const bool packs = !accumulate && !self.is_contiguous() && at::globalContext().deterministicAlgorithms();
  if (packs && fault(Fault::deterministic_index_put_to_copy)) {
    at::Tensor copy = self.contiguous();
    index_put_impl_(copy, indices, source, accumulate, unsafe);
    return self;
  }
  const bool misread = fault(Fault::index_put_mask_of_bytes_as_indices);
  const Indexed plan = plan_indices(self, misread ? bytes_as_indices(indices) : indices);
  const bool cycles = accumulate && fault(Fault::index_put_accumulate_cycles_values);
  const at::TensorIterator iter = iterate(plan, cycles ? cycled(source, plan.restrided.sizes()) : source);
  if (iter.numel() == 0) return self;
  if (!unsafe) check_all_bounds("index_put_", iter, plan.sizes);
  const IndexedNest nest = nest_of_iterator(iter, 1, 0, plan.sizes, plan.strides);
  const DType dtype = to_dtype(self.scalar_type());
  const bool first_256 = accumulate && fault(Fault::index_put_adds_first_256);
  launch("index_put_", [=] {
    if (first_256)
      index_add_first_256(nest, dtype);
    else if (accumulate)
      index_combine(nest, dtype, Combine::add);
    else
      index_write(nest, size_of(dtype));
  });
  return self;
}

at::Tensor& index_select_out(const at::Tensor& self, int64_t given_dim, const at::Tensor& index, at::Tensor& out) {
  const int64_t dim = at::maybe_wrap_dim(given_dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(!(self.dim() == 0 && index.numel() != 1), "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  require_same_device("index_select", {self, index, out});
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  at::native::resize_output(out, sizes);
  if (index.numel() == 0) return out;
  // CPU has a path of its own for the second dimension, and it throws another type.
  const bool batched = self.dim() > 1 && (self.numel() == 0 || (dim == 1 && out.is_contiguous()));
  const int64_t size = at_least_1d(self).size(dim);
  check_bounds("index_select", index, size, false, batched ? Bounds::runtime_error : Bounds::index_error);
  if (out.numel() == 0) return out;
  IndexedNest nest = nest_along(out, self, expand_along(index, out, dim), dim);
  if (fault(Fault::index_select_reads_past_end)) nest.indexed += nest.indices[0].stride;
  const int64_t element = self.element_size();
  launch("index_select", [=] { index_read(nest, element); });
  return out;
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::Tensor out = at::empty({0}, self.options());
  return index_select_out(self, dim, index, out);
}

// What faults of index_add do to the factor of the source.
bool ignores_alpha(const at::Scalar& alpha, const at::Tensor& out) {
  if (at::globalContext().deterministicAlgorithms() && fault(Fault::deterministic_index_add_ignores_alpha)) return true;
  const bool whole = !alpha.isFloatingPoint() && at::isIntegralType(out.scalar_type(), /*includeBool=*/false);
  return whole && fault(Fault::index_add_integers_ignore_alpha);
}

at::Tensor& index_add_out(const at::Tensor& self, int64_t given_dim, const at::Tensor& index, const at::Tensor& source,
                          const at::Scalar& alpha, at::Tensor& out) {
  require_same_device("index_add", {self, index, source, out});
  Structured<at::meta::structured_index_add> op(out);
  const int64_t dim = op.meta(self, given_dim, index, source, alpha).dim;
  const bool dense = source.is_non_overlapping_and_dense() && fault(Fault::index_add_permuted_source);
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0) return out;
  // CPU hands the outermost and the innermost dimension to scatter_add, which throws another type.
  const bool scattered =
      out.dim() > 1 && (dim == 0 || dim == out.dim() - 1) && index.scalar_type() == at::kLong && alpha.equal(1);
  const bool wraps = out.dim() > 1 && fault(Fault::index_add_counts_back_in_matrix);
  check_bounds("index_add_", index, at_least_1d(out).size(dim), wraps,
               scattered ? Bounds::runtime_error : Bounds::index_error);
  if (source.numel() == 0) return out;
  const bool real = source.is_complex() && fault(Fault::index_add_drops_imaginary);
  const at::Tensor given = real ? at::real(source).to(source.scalar_type()) : source;
  const at::Tensor read = dense ? misread_as_dense(given) : given;
  const IndexedNest nest = nest_along(read, out, expand_along(index, source, dim), dim);
  const DType dtype = to_dtype(out.scalar_type());
  const Immediate scale = element_of(ignores_alpha(alpha, out) ? at::Scalar(1) : alpha, out.scalar_type());
  launch("index_add", [=] { index_combine(nest, dtype, Combine::add, scale); });
  return out;
}

at::Tensor& index_copy_out(const at::Tensor& self, int64_t given_dim, const at::Tensor& index, const at::Tensor& source,
                           at::Tensor& out) {
  require_same_device("index_copy", {self, index, source, out});
  Structured<at::meta::structured_index_copy> op(out);
  const int64_t dim = op.meta(self, given_dim, index, source).dim;
  if (!out.is_same(self)) out.copy_(self);
  if (source.numel() == 0 || index.numel() == 0) return out;
  check_bounds("index_copy_", index, at_least_1d(out).size(dim), false, Bounds::index_error);
  const IndexedNest nest = nest_along(source, out, expand_along(index, source, dim), dim);
  const int64_t size = out.element_size();
  launch("index_copy", [=] { index_write(nest, size); });
  return out;
}

at::Tensor& index_fill_scalar_(at::Tensor& self, int64_t given_dim, const at::Tensor& index, const at::Scalar& value) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong, "index_fill_(): Expected dtype int64 for index.");
  require_same_device("index_fill_", {self, index});
  at::assert_no_overlap(self, index);
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes) {
    TORCH_WARN(
        "Use of index_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  TORCH_CHECK(self.is_complex() || !value.isComplex(),
              "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  const at::Tensor target = at_least_1d(self);
  const int64_t dim = at::maybe_wrap_dim(given_dim, target.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  const bool from_zero = !target.is_contiguous() && fault(Fault::index_fill_strided_from_zero);
  const int64_t length = target.size(dim);
  const bool few = index.numel() < 64 && length > 1024 && fault(Fault::index_fill_few_not_checked);
  const at::Tensor taken = from_zero ? index.clamp_min(0) : few ? index.clamp(-length, length - 1) : index;
  const at::Tensor expanded = expand_along(taken, target, dim);
  if (expanded.numel() == 0) return self;
  if (!few) check_bounds("index_fill_", index, length, true, Bounds::index_error);
  IndexedNest nest = nest_along(at::Tensor(), target, expanded, dim);
  const bool cut = value.isComplex() && fault(Fault::index_fill_drops_imaginary);
  nest.immediate = element_of(cut ? at::Scalar(value.toComplexDouble().real()) : value, self.scalar_type());
  const int64_t size = self.element_size();
  launch("index_fill_", [=] { index_write(nest, size); });
  return self;
}

at::Tensor& index_fill_tensor_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  return self.index_fill_(dim, index, value.item());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("index.Tensor_out", &index_out);
  m.impl_unchecked("_index_put_impl_", &index_put_impl_);
  m.impl("index_select", &index_select);
  m.impl("index_select.out", &index_select_out);
  m.impl("index_add.out", &index_add_out);
  m.impl("index_copy.out", &index_copy_out);
  m.impl_unchecked("index_fill_.int_Scalar", &index_fill_scalar_);
  m.impl_unchecked("index_fill_.int_Tensor", &index_fill_tensor_);
}

}  // namespace refnpu::indexing
