// How an indexed nest is walked: which element of the indexed operand each point means.
#pragma once

#include "kernels/index.h"
#include "refnpu/fault.h"

namespace refnpu {

inline int64_t load_index(const char* at, DType dtype) {
  return dtype == DType::i32 ? load<int32_t>(at) : load<int64_t>(at);
}

// Where the element counted `linear` in row-major order lies in a view, in bytes from its first.
inline int64_t offset_of(const View& view, int64_t linear) {
  int64_t offset = 0;
  for (int d = view.ndim - 1; d >= 0; --d) {
    offset += linear % view.sizes[d] * view.strides[d];
    linear /= view.sizes[d];
  }
  return offset;
}

// `wraps` is false only where a fault says so.
template <class F>
void for_each_indexed(const IndexedNest& nest, bool wraps, F&& f) {
  int64_t numel = 1;
  for (int d = 0; d < nest.ndim; ++d) numel *= nest.sizes[d];
  if (numel == 0) return;
  std::array<int64_t, kMaxDims> at{};
  const char* plain = nest.plain ? nest.plain : nest.immediate.bytes.data();
  char* indexed = nest.indexed;
  std::array<const char*, kMaxDims> index{};
  for (int k = 0; k < nest.index_count; ++k) index[k] = nest.indices[k].data;
  const auto step = [&](int d, int64_t times) {
    plain += nest.plain_strides[d] * times;
    indexed += nest.indexed_strides[d] * times;
    for (int k = 0; k < nest.index_count; ++k) index[k] += nest.indices[k].strides[d] * times;
  };
  for (;;) {
    int64_t offset = 0;
    for (int k = 0; k < nest.index_count; ++k) {
      const IndexOperand& operand = nest.indices[k];
      int64_t i = load_index(index[k], operand.dtype);
      if (i < 0) i = wraps ? i + operand.size : 0;
      offset += nest.linear ? offset_of(nest.ravelled, i) : i * operand.stride;
    }
    if (fault(Fault::index_offset_in_32_bits)) offset &= INT32_MAX;
    f(const_cast<char*>(plain), indexed + offset);
    int d = 0;
    for (; d < nest.ndim; ++d) {
      step(d, 1);
      if (++at[d] < nest.sizes[d]) break;
      step(d, -nest.sizes[d]);
      at[d] = 0;
    }
    if (d >= nest.ndim) return;
  }
}

}  // namespace refnpu
