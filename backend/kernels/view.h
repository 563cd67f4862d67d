// How a kernel sees a tensor: a pointer into device memory, sizes, and strides in bytes.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/dtype.h"

namespace refnpu {

inline constexpr int kMaxDims = 25;  // TensorIterator coalesces to at most this many (c10's own limit is 64 dims)

// One tensor. `data` points at the first element of the view (storage offset already applied). Plain data: a launch
// captures it by value, and the memory it points to is owned by the stream order of the allocator.
struct View {
  char* data = nullptr;
  DType dtype = DType::f32;
  int ndim = 0;
  std::array<int64_t, kMaxDims> sizes{};
  std::array<int64_t, kMaxDims> strides{};  // bytes; 0 in an expanded dimension; negative in a reversed one

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }
};

// One element carried along with a launch instead of lying in device memory (a zero-dim host tensor among the
// operands).
struct Immediate {
  alignas(16) std::array<char, 16> bytes{};
};

// N operands iterated together over one shape (what TensorIterator computes: broadcast, permuted, coalesced).
// Dimension 0 is the innermost. strides[operand][dim] in bytes. An operand without a data pointer is its immediate.
template <int N>
struct Nest {
  int ndim = 0;
  std::array<int64_t, kMaxDims> sizes{};
  std::array<char*, N> data{};
  std::array<DType, N> dtypes{};
  std::array<std::array<int64_t, kMaxDims>, N> strides{};
  std::array<Immediate, N> immediates{};

  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= sizes[d];
    return n;
  }
};

}  // namespace refnpu
