#include "kernels/elementwise.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/iterate.h"

namespace refnpu {
namespace {

constexpr int64_t kStretch = 256;  // elements converted at a time

// A row whose operands need not be stored in the dtype that it wants.
template <int N>
class ConvertingRow {
 public:
  explicit ConvertingRow(const Elementwise<N>& op) : op_(op) {
    for (int k = 0; k < N; ++k) {
      const DType stored = op.nest.dtypes[k], wanted = op.wanted[k];
      if (stored == wanted) continue;
      casts_[k] = k == 0 ? cast_row(stored, wanted) : cast_row(wanted, stored);
    }
  }

  void operator()(char* const* data, const int64_t* strides, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += kStretch) run_stretch(data, strides, begin, std::min(kStretch, n - begin));
  }

 private:
  void run_stretch(char* const* data, const int64_t* strides, int64_t begin, int64_t n) {
    std::array<char*, N> at;
    std::array<int64_t, N> step;
    for (int k = 0; k < N; ++k) {
      char* const stored = data[k] + begin * strides[k];
      at[k] = casts_[k] ? buffers_[k] : stored;
      step[k] = casts_[k] ? size_of(op_.wanted[k]) : strides[k];
      if (!casts_[k] || k == 0) continue;
      if (strides[k] == 0) step[k] = 0;
      casts_[k](at[k], size_of(op_.wanted[k]), stored, strides[k], strides[k] == 0 ? 1 : n);
    }
    op_.row(at.data(), step.data(), n, op_.params);
    if (casts_[0]) casts_[0](data[0] + begin * strides[0], strides[0], at[0], step[0], n);
  }

  const Elementwise<N>& op_;
  std::array<CastRow, N> casts_{};
  alignas(16) char buffers_[N][kStretch * 16];
};

}  // namespace

DType compute_dtype(DType dtype) {
  if (dtype == DType::c128 || dtype == DType::f64 || dtype == DType::u64) return dtype;
  if (is_complex_dtype(dtype)) return DType::c64;
  return is_floating_dtype(dtype) ? DType::f32 : DType::i64;
}

template <int N>
void Elementwise<N>::operator()() const {
  if (nest.dtypes == wanted) {
    for_each_row(nest, [&](char* const* data, const int64_t* strides, int64_t n) { row(data, strides, n, params); });
  } else {
    for_each_row(nest, ConvertingRow<N>(*this));
  }
}

template struct Elementwise<2>;
template struct Elementwise<3>;
template struct Elementwise<4>;

}  // namespace refnpu
