// How host code hands index tensors to kernels: nests, bounds checks, and device cells that a kernel reports through.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <initializer_list>
#include <vector>

#include "kernels/index.h"

namespace refnpu {

enum class Bounds { index_error, runtime_error };  // what CPU throws for an index out of range

// Throws unless every element of `index` lies in [-size, size), or [0, size) where negative ones are not allowed.
// Waits for the device.
void check_bounds(const char* op, const at::Tensor& index, int64_t size, bool negative_allowed, Bounds thrown);

// One walk over the shape of `index`: `plain` (at least as large in every dimension; undefined: an immediate) is where
// its strides say, `indexed` has the index for its coordinate in `dim`. Zero-dim tensors count as vectors of one
// element.
IndexedNest nest_along(const at::Tensor& plain, const at::Tensor& indexed, const at::Tensor& index, int64_t dim);

// The vector `index` as long in dimension `dim` as it is, and expanded to `like` in every other.
at::Tensor expand_along(const at::Tensor& index, const at::Tensor& like, int64_t dim);

// A walk that an iterator has worked out: operands `plain` and `indexed` (0 and 1 in some order), all further ones
// indices into dimensions of these sizes and byte strides.
IndexedNest nest_of_iterator(const at::TensorIteratorBase& iter, int plain, int indexed, at::IntArrayRef sizes,
                             at::IntArrayRef strides);

at::Tensor at_least_1d(const at::Tensor& tensor);

// `count` int64 cells of device memory beside `like`; read_cells waits for the device.
at::Tensor make_cells(const at::Tensor& like, int64_t count);
std::vector<int64_t> read_cells(const at::Tensor& cells);

// The value as one element of `type`. Throws, as CPU does, when the value does not fit.
Immediate element_of(const c10::Scalar& value, c10::ScalarType type);

// Throws unless all that are defined lie on one device. The first one is. An op that gives its tensors to a
// TensorIterator needs no other check.
void require_same_device(const char* op, std::initializer_list<at::Tensor> tensors);

// What a kernel sees that takes a strided tensor for a dense one (a fault): its memory in storage order, zeros after
// the end.
at::Tensor misread_as_dense(const at::Tensor& tensor);

}  // namespace refnpu
