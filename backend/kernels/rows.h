// Rows of elements moved between strided device memory and buffers of the type that they are computed in.
//
// Reductions, scans, softmax, matrix products, normalisations and sorts compute in three types only: int64 for integers
// and bool (narrower integers wrap to the same bits when they are written), double for real floats, complex128 for
// complex ones. Results are rounded once, when they are written.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/iterate.h"
#include "kernels/view.h"

namespace refnpu {

// Reads `n` elements of `dtype`, `stride` bytes apart. C must be wide_t of the dtype's kind.
template <class C>
void read_row(C* to, const char* from, int64_t stride, int64_t n, DType dtype);
template <class C>
void write_row(char* to, int64_t stride, int64_t n, DType dtype, const C* from);

// True for the elements that are not zero, whatever their dtype.
void read_truth(bool* to, const char* from, int64_t stride, int64_t n, DType dtype);

template <class C>
void write_one(char* to, DType dtype, C value) {
  write_row<C>(to, 0, 1, dtype, &value);
}

// Calls f.template operator()<C>() for the type that `dtype` is computed in.
template <class F>
void dispatch_wide(DType dtype, F&& f) {
  if (is_complex_dtype(dtype)) return f.template operator()<complex128>();
  if (is_floating_dtype(dtype)) return f.template operator()<double>();
  f.template operator()<int64_t>();
}

// K tensors cut into rows along one dimension: `outer` walks the first elements of the rows.
template <int K>
struct Rows {
  Nest<K> outer;
  std::array<int64_t, K> lengths{};
  std::array<int64_t, K> strides{};

  template <class C>
  void read(int k, const char* row, C* to) const {
    read_row(to, row, strides[k], lengths[k], outer.dtypes[k]);
  }
};

// Calls f(rows) for each row: rows[k] is the address of the first element in tensor k.
template <int K, class F>
void for_each_outer(const Nest<K>& outer, F&& f) {
  for_each_row(outer, [&](char* const* data, const int64_t* strides, int64_t n) {
    std::array<char*, K> at;
    for (int k = 0; k < K; ++k) at[k] = data[k];
    for (int64_t i = 0; i < n; ++i) {
      f(static_cast<char* const*>(at.data()));
      for (int k = 0; k < K; ++k) at[k] += strides[k];
    }
  });
}

}  // namespace refnpu
