// Moving elements between places; see the header.
#include "kernels/cat.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/index_move.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

int64_t repeats_at(const View& repeats, int64_t i) {
  const char* at = repeats.data + i * repeats.strides[0];
  return repeats.dtype == DType::i32 ? load<int32_t>(at) : load<int64_t>(at);
}

// The fault of moves through registers that hold quiet NaNs.
void move_floats(const View& from, const View& to) {
  for_each_row(row_major<2>({to, from}), [](char* const* data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const float value = load<float>(data[1] + i * strides[1]);
      store<float>(data[0] + i * strides[0], std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value);
    }
  });
}

}  // namespace

void move_elements(const View& from, const View& to) {
  if (to.dtype == DType::f32 && fault(Fault::cat_quiets_nan)) return move_floats(from, to);
  by_size(size_of(to.dtype), [&]<class T>() {
    for_each_row(row_major<2>({to, from}), [](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) store(data[0] + i * strides[0], load<T>(data[1] + i * strides[1]));
    });
  });
}

void repeat_interleave(const View& repeats, const View& to) {
  dispatch<Types<int32_t, int64_t>>(to.dtype, "repeat_interleave", [&]<class T>() {
    int64_t written = 0;
    const int64_t most = fault(Fault::repeat_interleave_1024_copies) ? 1024 : to.sizes[0];
    for (int64_t i = 0; i < repeats.sizes[0]; ++i) {
      for (int64_t left = std::min(most, repeats_at(repeats, i)); left > 0 && written < to.sizes[0]; --left) {
        store<T>(to.data + written++ * to.strides[0], T(i));
      }
    }
  });
}

void sum_repeats(const View& repeats, int64_t* totals) {
  const bool skips = fault(Fault::repeat_interleave_skips_negative);
  uint64_t total = 0;  // wraps around where it overflows
  totals[1] = 0;
  for (int64_t i = 0; i < repeats.sizes[0]; ++i) {
    const int64_t n = repeats_at(repeats, i);
    if (n < 0) totals[1] = 1;
    if (n >= 0 || !skips) total += uint64_t(n);
  }
  totals[0] = int64_t(total);
}

}  // namespace refnpu
