// Selecting elements by a condition; see the header.
#include "kernels/masked_select.h"

#include "kernels/index_move.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class T>
bool is_nonzero(const char* at) {
  return convert<bool>(load<T>(at));
}

View with_columns_reversed(View matrix) {
  matrix.data += (matrix.sizes[1] - 1) * matrix.strides[1];
  matrix.strides[1] = -matrix.strides[1];
  return matrix;
}

}  // namespace

void count_nonzero(const View& self, int64_t* count) {
  *count = 0;
  dispatch_all(self.dtype, "count_nonzero", [&]<class T>() {
    for_each_row(row_major<1>({self}), [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) *count += is_nonzero<T>(data[0] + i * strides[0]);
    });
  });
}

void nonzero(const View& self, const View& out) {
  const View to = fault(Fault::nonzero_transposed) ? with_columns_reversed(out) : out;
  std::array<int64_t, kMaxDims> at{};
  int64_t found = 0;
  const bool in_float = fault(Fault::nonzero_counts_in_float);
  const bool narrow = fault(Fault::nonzero_position_in_32_bits);
  const auto write = [&] {
    char* row = to.data + found * to.strides[0];
    found = in_float ? int64_t(float(found) + 1.0f) : found + 1;
    for (int d = 0; d < self.ndim; ++d) store<int64_t>(row + d * to.strides[1], narrow ? int32_t(at[d]) : at[d]);
  };
  const bool spills = self.ndim == 1 && fault(Fault::nonzero_writes_past_end);
  const auto advance = [&] {
    for (int d = self.ndim - 1; d >= 0 && ++at[d] == self.sizes[d]; --d) at[d] = 0;
  };
  dispatch_all(self.dtype, "nonzero", [&]<class T>() {
    for_each_row(row_major<1>({self}), [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i, advance()) {
        if ((found < out.sizes[0] || spills) && is_nonzero<T>(data[0] + i * strides[0])) write();
      }
    });
  });
}

void masked_select(const View& self, const View& mask, const View& out) {
  char* next = out.data;
  const char* last = fault(Fault::masked_select_stops_at_1024) ? next + 1024 * out.strides[0] : nullptr;
  by_size(size_of(self.dtype), [&]<class T>() {
    for_each_row(row_major<2>({self, mask}), [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        if (!load<bool>(data[1] + i * strides[1])) continue;
        if (next == last) return;
        store(next, load<T>(data[0] + i * strides[0]));
        next += out.strides[0];
      }
    });
  });
}

void masked_scatter(const View& self, const View& mask, const char* source) {
  const bool narrow = fault(Fault::masked_scatter_position_in_16_bits);
  int64_t taken = 0;
  by_size(size_of(self.dtype), [&]<class T>() {
    for_each_row(row_major<2>({self, mask}), [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        if (!load<bool>(data[1] + i * strides[1])) continue;
        const int64_t position = narrow ? taken & 0xFFFF : taken;
        store(data[0] + i * strides[0], load<T>(source + position * int64_t(sizeof(T))));
        ++taken;
      }
    });
  });
}

}  // namespace refnpu
