// The one loop of every op that reads or writes through index tensors: index, gather, scatter, index_add, take, put.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/view.h"

namespace refnpu {

// An index tensor beside the two operands of an IndexedNest. At each point it moves the indexed operand by
// (index < 0 ? index + size : index) * stride bytes.
struct IndexOperand {
  const char* data = nullptr;
  DType dtype = DType::i64;                 // i64 or i32
  std::array<int64_t, kMaxDims> strides{};  // bytes, over the nest's dimensions
  int64_t size = 0;
  int64_t stride = 0;
};

// Two operands walked together over one shape, dimension 0 innermost. `plain` is where its strides say; `indexed` is
// moved further by every index operand. A plain operand without a pointer is its immediate.
struct IndexedNest {
  int ndim = 0;
  std::array<int64_t, kMaxDims> sizes{};
  char* plain = nullptr;
  Immediate immediate;
  std::array<int64_t, kMaxDims> plain_strides{};
  char* indexed = nullptr;
  std::array<int64_t, kMaxDims> indexed_strides{};
  int index_count = 0;
  std::array<IndexOperand, kMaxDims> indices{};
  // take and put: the only index counts elements of this view in row-major order, instead of steps along one dimension.
  bool linear = false;
  View ravelled;
};

enum class Combine { add, multiply, maximum, minimum };

// The first index that lies outside a dimension, as a kernel reports it in device memory.
struct BadIndex {
  int64_t found = 0;
  int64_t value = 0;
};

void index_read(const IndexedNest& nest, int64_t element_size);   // plain = indexed
void index_write(const IndexedNest& nest, int64_t element_size);  // indexed = plain
// indexed = combine(indexed, plain), with plain * scale if there is a scale, one element of the dtype, which only `add`
// uses: an infinite complex number times one is not itself. maximum and minimum take no complex dtype and propagate
// NaN.
void index_combine(const IndexedNest& nest, DType dtype, Combine combine,
                   std::optional<Immediate> scale = std::nullopt);

// As index_combine with `add`, which the fault index_put_adds_first_256 cuts.
void index_add_first_256(const IndexedNest& nest, DType dtype);

// Looks for an index outside [-size, size), or outside [0, size) where negative ones are not allowed.
void index_check(const View& index, int64_t size, bool negative_allowed, BadIndex* bad);

}  // namespace refnpu
