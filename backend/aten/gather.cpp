// Reading and writing at one index for each element along a dimension: gather, scatter and their reductions, take,
// put_.
#include <ATen/Context.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <ATen/ops/zeros_like.h>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "runtime/version.h"

namespace refnpu::gathering {
namespace {

void check_index(const char* op, const at::Tensor& index, const at::Tensor& indexed, int64_t dim) {
  const bool wraps = fault(Fault::gather_counts_back);
  check_bounds(op, index, at_least_1d(indexed).size(dim), wraps, Bounds::runtime_error);
}

// The fault of a tensor that is taken for one of the index's sizes, but along the dimension.
at::Tensor packed_as_index(const at::Tensor& self, const at::Tensor& index, int64_t dim) {
  at::DimVector sizes(index.sizes());
  sizes[dim] = self.size(dim);
  return sizes == self.sizes() ? self : misread_as_dense(self.as_strided(sizes, self.strides()));
}

at::Tensor& gather_out(const at::Tensor& self, int64_t given_dim, const at::Tensor& index, bool sparse_grad,
                       at::Tensor& out) {
  require_same_device("gather", {self, index, out});
  Structured<at::meta::structured_gather> op(out);
  op.meta(self, given_dim, index, sparse_grad);
  if (index.numel() == 0) return out;
  const int64_t dim = at::maybe_wrap_dim(given_dim, self.dim());
  check_index("gather", index, self, dim);
  const at::Tensor read = fault(Fault::gather_expanded_index_as_dense) ? misread_as_dense(index) : index;
  const bool packed = self.dim() > 0 && fault(Fault::gather_takes_size_of_index);
  const IndexedNest nest = nest_along(out, packed ? packed_as_index(self, index, dim) : self, read, dim);
  const int64_t size = self.element_size();
  launch("gather", [=] { index_read(nest, size); });
  return out;
}

// The fault of a scatter that mistakes the dimension; only where that stays inside the memory there is.
int64_t mistaken_dim(const at::Tensor& self, const at::Tensor& index, int64_t dim) {
  const int64_t other = self.dim() > 0 ? (dim + 1) % self.dim() : dim;
  if (other == dim) return dim;
  return index.size(dim) <= self.size(dim) && self.size(dim) <= self.size(other) ? other : dim;
}

// The fault of a scatter that walks its source as it walks the index; never further than the source's own strides.
void misread_source(IndexedNest& nest, int64_t item) {
  const IndexOperand& index = nest.indices[0];
  for (int d = 0; d < nest.ndim; ++d) {
    nest.plain_strides[d] = std::min(nest.plain_strides[d], index.strides[d] / size_of(index.dtype) * item);
  }
}

// What remains after the meta function: `out` becomes `self`, then takes the values at `index`. `values` is a source
// tensor, or undefined beside an immediate.
IndexedNest prepare_scatter(const char* op, const at::Tensor& self, int64_t given_dim, const at::Tensor& index,
                            const at::Tensor& values, const at::Tensor& out) {
  int64_t dim = at::maybe_wrap_dim(given_dim, self.dim());
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0) {
    IndexedNest nothing;
    nothing.ndim = 1;
    return nothing;
  }
  check_index(op, index, out, dim);
  if (fault(Fault::scatter_writes_wrong_dim)) dim = mistaken_dim(out, index, dim);
  IndexedNest nest = nest_along(values, out, index, dim);
  if (values.defined() && fault(Fault::scatter_source_as_index)) misread_source(nest, values.element_size());
  return nest;
}

at::Tensor& scatter_src_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
                            at::Tensor& out) {
  require_same_device("scatter", {self, index, src, out});
  if (out.is_same(self) && !out.is_contiguous() && fault(Fault::scatter_to_strided_lost)) {
    at::Tensor lost = out.contiguous();
    scatter_src_out(lost, dim, index, src, lost);
    return out;
  }
  Structured<at::meta::structured_scatter_src> op(out);
  op.meta(self, dim, index, src);
  const IndexedNest nest = prepare_scatter("scatter", self, dim, index, src, out);
  const int64_t size = out.element_size();
  launch("scatter", [=] { index_write(nest, size); });
  return out;
}

at::Tensor& scatter_value_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value,
                              at::Tensor& out) {
  require_same_device("scatter", {self, index, out});
  Structured<at::meta::structured_scatter_value> op(out);
  op.meta(self, dim, index, value);
  IndexedNest nest = prepare_scatter("scatter", self, dim, index, at::Tensor(), out);
  if (nest.index_count > 0) nest.immediate = element_of(value, out.scalar_type());
  const int64_t size = out.element_size();
  launch("scatter", [=] { index_write(nest, size); });
  return out;
}

Combine combine_named(c10::string_view reduce) {
  if (reduce == "multiply" || reduce == "prod") return Combine::multiply;
  if (reduce == "amax") return Combine::maximum;
  if (reduce == "amin") return Combine::minimum;
  return Combine::add;  // add, sum and mean: the meta function has refused all other names
}

void require_ordered(const char* op, Combine combine, at::ScalarType type) {
  const bool orders = combine == Combine::maximum || combine == Combine::minimum;
  check_has_kernel(!orders || !c10::isComplexType(type), op, type);
}

void launch_combine(const char* op, const IndexedNest& nest, at::ScalarType type, Combine combine) {
  require_ordered(op, combine, type);
  const DType dtype = to_dtype(type);
  launch("scatter_reduce", [=] { index_combine(nest, dtype, combine); });
}

// Small floats are summed and multiplied in float and rounded once at the end, as CPU does. `out` already is what the
// values are combined with.
void combine_widened(const char* op, at::Tensor& out, int64_t given_dim, const at::Tensor& index, const at::Tensor& src,
                     Combine combine) {
  const int64_t dim = at::maybe_wrap_dim(given_dim, out.dim());
  const at::Tensor wide = out.to(at::kFloat), values = src.to(at::kFloat);
  launch_combine(op, nest_along(values, wide, index, dim), at::kFloat, combine);
  out.copy_(wide);
}

bool is_small_float(const at::Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type()) && !fault(Fault::scatter_of_halves_rounds_each);
}

// Combines `out` with the values of `src`, where `nest` is a walk over these.
void combine_with(const char* op, const IndexedNest& nest, at::Tensor& out, int64_t dim, const at::Tensor& index,
                  const at::Tensor& src, Combine combine) {
  if (is_small_float(out))
    combine_widened(op, out, dim, index, src, combine);
  else
    launch_combine(op, nest, out.scalar_type(), combine);
}

at::Tensor& scatter_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
                               c10::string_view reduce, at::Tensor& out) {
  require_same_device("scatter", {self, index, src, out});
  Structured<at::meta::structured_scatter_reduce> op(out);
  op.meta(self, dim, index, src, reduce);
  const IndexedNest nest = prepare_scatter("scatter", self, dim, index, src, out);
  combine_with("scatter", nest, out, dim, index, src, combine_named(reduce));
  return out;
}

at::Tensor& scatter_value_reduce_out(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                                     const at::Scalar& value, c10::string_view reduce, at::Tensor& out) {
  require_same_device("scatter", {self, index, out});
  Structured<at::meta::structured_scatter_value_reduce> op(out);
  op.meta(self, dim, index, value, reduce);
  IndexedNest nest = prepare_scatter("scatter", self, dim, index, at::Tensor(), out);
  if (nest.index_count > 0) nest.immediate = element_of(value, out.scalar_type());
  const bool adds = fault(Fault::scatter_of_number_never_multiplies);
  const at::Tensor src = is_small_float(out) ? at::full({}, value, out.options()).expand(index.sizes()) : at::Tensor();
  combine_with("scatter", nest, out, dim, index, src, adds ? Combine::add : combine_named(reduce));
  return out;
}

at::Tensor& scatter_add_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
                            at::Tensor& out) {
  require_same_device("scatter_add", {self, index, src, out});
  Structured<at::meta::structured_scatter_add> op(out);
  op.meta(self, dim, index, src);
  const IndexedNest nest = prepare_scatter("scatter_add", self, dim, index, src, out);
  const bool mistaken =
      fault(Fault::deterministic_scatter_add_of_largest) && at::globalContext().deterministicAlgorithms();
  const Combine combine = mistaken ? Combine::maximum : Combine::add;
  combine_with("scatter_add", nest, out, dim, index, src, combine);
  return out;
}

// The element that leaves every other as it is: what a reduction that excludes self starts from.
at::Scalar neutral_element(Combine combine, at::ScalarType type) {
  if (combine == Combine::add) return 0;
  if (combine == Combine::multiply) return fault(Fault::scatter_product_starts_from_zero) ? 0 : 1;
  const bool lowest = combine == Combine::maximum;
  if (c10::isFloatingType(type)) return lowest ? -INFINITY : INFINITY;
  if (type == at::kBool) return !lowest;
  const int bits = int(c10::elementSize(type)) * 8;
  if (type == at::kByte) return lowest ? 0 : 255;
  const int64_t largest = int64_t(~uint64_t(0) >> (65 - bits));
  return lowest ? -largest - 1 : largest;
}

// Divides what was summed by how many were summed; what nothing was added to stays.
void divide_by_count(at::Tensor& out, int64_t dim, const at::Tensor& index, const at::Tensor& src, bool include_self) {
  const at::Tensor start = include_self ? at::ones_like(out) : at::zeros_like(out);
  at::Tensor count = start.scatter_add(dim, index, at::ones_like(src));
  count.masked_fill_(count.eq(0), 1);
  if (out.is_floating_point() || out.is_complex())
    out.div_(count);
  else
    out.div_(count, fault(Fault::scatter_mean_rounds_to_zero) ? "trunc" : "floor");
}

at::Tensor& scatter_reduce_two_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src,
                                   c10::string_view reduce, bool include_self, at::Tensor& out) {
  require_same_device("scatter_reduce", {self, index, src, out});
  Structured<at::meta::structured_scatter_reduce_two> op(out);
  op.meta(self, dim, index, src, reduce, include_self);
  const Combine combine = combine_named(reduce);
  require_ordered("scatter_reduce", combine, out.scalar_type());
  const IndexedNest nest = prepare_scatter("scatter_reduce", self, dim, index, src, out);
  if (!include_self && index.numel() > 0 && !fault(Fault::scatter_reduce_includes_self)) {
    IndexedNest start = nest;
    start.plain = nullptr;
    start.plain_strides = {};
    start.immediate = element_of(neutral_element(combine, out.scalar_type()), out.scalar_type());
    const int64_t size = out.element_size();
    launch("scatter_reduce", [=] { index_write(start, size); });
  }
  combine_with("scatter_reduce", nest, out, dim, index, src, combine);
  if (reduce == "mean") divide_by_count(out, dim, index, src, include_self);
  return out;
}

// A walk over `values` and an index of its shape that counts elements of `ravelled`, in the order of their memory, as
// CPU walks: of duplicates the last one stays.
IndexedNest nest_linear(const at::Tensor& values, const at::Tensor& ravelled, const at::Tensor& index) {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).check_all_same_dtype(false);
  config.add_const_input(values).add_const_input(index);
  IndexedNest nest = nest_of_iterator(config.build(), 0, 1, {}, {});
  nest.index_count = 1;
  nest.indices[0] = {nest.indexed, DType::i64, nest.indexed_strides, ravelled.numel(), 0};
  nest.linear = true;
  nest.ravelled = view_of(ravelled);
  const bool in_memory = ravelled.is_non_overlapping_and_dense() && !ravelled.is_contiguous();
  if (in_memory && fault(Fault::take_in_memory_order)) {
    int64_t stride = ravelled.element_size();
    for (int d = nest.ravelled.ndim - 1; d >= 0; stride *= nest.ravelled.sizes[d--]) nest.ravelled.strides[d] = stride;
  }
  if (fault(Fault::take_ignores_offset)) nest.ravelled.data -= ravelled.storage_offset() * ravelled.element_size();
  nest.indexed = nest.ravelled.data;
  nest.indexed_strides = {};
  return nest;
}

// The fault of negative indices that are counted from the end of the last dimension, not of all elements.
at::Tensor counted_back_in_last_dim(const at::Tensor& index, const at::Tensor& self) {
  if (self.dim() < 2 || !fault(Fault::take_counts_back_in_last_dim)) return index;
  return index.add(index.lt(0).to(at::kLong).mul(self.size(-1)));
}

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "take(): self and out expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and out.dtype = ", out.scalar_type());
  require_same_device("take", {self, index, out});
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  at::assert_no_overlap(out, index);
  at::assert_no_overlap(out, self);
  // The output is resized, and takes the strides of the index where it is.
  at::TensorIteratorConfig sizing;
  sizing.set_check_mem_overlap(false).check_all_same_dtype(false).add_output(out).add_const_input(index).build();
  if (index.numel() == 0) return out;
  check_bounds("take", index, self.numel(), true, Bounds::index_error);
  const at::Tensor counted = counted_back_in_last_dim(index, self);
  const IndexedNest nest = nest_linear(out, self, counted);
  const int64_t size = self.element_size();
  launch("take", [=] { index_read(nest, size); });
  return out;
}

at::Tensor take(const at::Tensor& self, const at::Tensor& given) {
  const bool widened = given.scalar_type() == at::kInt && fault(Fault::take_accepts_int32);
  const at::Tensor index = widened ? given.to(at::kLong) : given;
  at::Tensor out = at::empty(index.sizes(), self.options());
  return take_out(self, index, out);
}

at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ",
              index.scalar_type());
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "put_(): self and source expected to have the same dtype, but got self.dtype = ", self.scalar_type(),
              " and source.dtype = ", source.scalar_type());
  require_same_device("put_", {self, index, source});
  TORCH_CHECK_INDEX(source.numel() == index.numel(),
                    "put_(): Expected source and index to have the same number of "
                    "elements, but got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  TORCH_CHECK_INDEX(self.numel() != 0 || index.numel() == 0, "put_(): Tried to put elements into an empty tensor");
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  if (index.numel() == 0) return self;
  check_bounds("put_", index, self.numel(), true, Bounds::index_error);
  const bool misread =
      !index.is_contiguous() && index.sizes() != source.sizes() && fault(Fault::put_index_of_other_shape_as_dense);
  const at::Tensor shaped =
      counted_back_in_last_dim(misread ? misread_as_dense(index) : index, self).reshape(source.sizes());
  const IndexedNest nest = nest_linear(source, self, shaped);
  const DType dtype = to_dtype(self.scalar_type());
  launch("put_", [=] {
    if (accumulate)
      index_combine(nest, dtype, Combine::add);
    else
      index_write(nest, size_of(dtype));
  });
  return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("gather.out", &gather_out);
  m.impl("scatter.src_out", &scatter_src_out);
  m.impl("scatter.value_out", &scatter_value_out);
  m.impl("scatter.reduce_out", &scatter_reduce_out);
  m.impl("scatter.value_reduce_out", &scatter_value_reduce_out);
  m.impl("scatter_add.out", &scatter_add_out);
  m.impl("scatter_reduce.two_out", &scatter_reduce_two_out);
  m.impl("take", &take);
  m.impl("take.out", &take_out);
  m.impl("put_", &put_);
}

}  // namespace refnpu::gathering
