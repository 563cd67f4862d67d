// Triangles and the trace; see the header.
#include "kernels/triangle.h"

#include <algorithm>
#include <cstring>

#include "kernels/index_move.h"
#include "kernels/integer_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

// Takes the dimensions outside the innermost one for dense above it, where that moves nothing outwards.
View with_dense_outer(View view) {
  for (int d = view.ndim - 2; d >= 0; --d)
    view.strides[d] = std::min(view.strides[d], view.strides[d + 1] * view.sizes[d + 1]);
  return view;
}

}  // namespace

void triangle(const View& self, const View& out, int64_t k, bool upper) {
  if (upper && fault(Fault::triu_off_by_one)) ++k;
  if (self.ndim > 2 && fault(Fault::triangle_of_batches_at_diagonal)) k = 0;
  const int row = self.ndim - 2, column = self.ndim - 1;
  if (fault(Fault::triangle_far_diagonal_clamped)) k = std::clamp(k, 1 - self.sizes[row], self.sizes[column] - 1);
  const bool tiled = self.sizes[column] > 64 && fault(Fault::triangle_of_tiles);
  View matrices = self, results = out;
  matrices.ndim = results.ndim = row;
  if (fault(Fault::triangle_outer_batches_as_dense)) matrices = with_dense_outer(matrices);
  const auto copy_matrix = [&]<class T>(const char* from, char* to) {
    const bool leaves_rest = fault(Fault::triangle_not_cleared) && from != to;
    const bool leaves_half = sizeof(T) == 16 && fault(Fault::triangle_clears_eight_bytes);
    for (int64_t i = 0; i < self.sizes[row]; ++i) {
      for (int64_t j = 0; j < self.sizes[column]; ++j) {
        const int64_t above = tiled ? j / 16 * 16 - i / 16 * 16 : j - i;
        const bool inside = upper ? above >= k : above <= k;
        if (!inside && leaves_rest) continue;
        const char* read = from + i * self.strides[row] + j * self.strides[column];
        T element = inside || leaves_half ? load<T>(read) : T{};
        if (!inside && leaves_half) std::memset(&element, 0, sizeof(T) / 2);
        store(to + i * out.strides[row] + j * out.strides[column], element);
      }
    }
  };
  by_size(size_of(self.dtype), [&]<class T>() {
    for_each_row(row_major<2>({matrices, results}), [&](char* const* data, const int64_t* strides, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        copy_matrix.template operator()<T>(data[0] + i * strides[0], data[1] + i * strides[1]);
      }
    });
  });
}

void triangle_indices(const View& out, int64_t rows, int64_t columns, int64_t k, bool upper) {
  dispatch<Concat<Integral, Unsigned>>(out.dtype, "triangle_indices", [&]<class T>() {
    const int64_t diagonal = std::clamp(k, -rows, columns);
    const int64_t first = upper ? 0 : std::max<int64_t>(0, -diagonal);
    const int64_t last = upper ? std::clamp<int64_t>(columns - diagonal, 0, rows) : rows;
    char* at = out.data;
    int64_t number = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = upper ? std::max<int64_t>(0, i + diagonal) : 0;
      const int64_t end = upper ? columns : std::min(columns, i + diagonal + 1);
      for (int64_t j = begin; j < end; ++j) {
        const bool wraps = number >= 65536 && fault(Fault::triangle_indices_in_16_bits);
        const char* same = wraps ? out.data + (number & 0xFFFF) * out.strides[1] : nullptr;
        store<T>(at, same ? load<T>(same) : T(i));
        store<T>(at + out.strides[0], same ? load<T>(same + out.strides[0]) : T(j));
        at += out.strides[1];
        ++number;
      }
    }
  });
}

void trace(const View& self, DType out_dtype, char* out) {
  using Traced = Concat<NumericTypes, Bool, ComplexHalf>;
  dispatch<Traced>(self.dtype, "trace", [&]<class T>() {
    using Sum =
        std::conditional_t<is_complex_v<T>, complex128, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
    Sum sum{};
    int64_t n = self.sizes[0] < self.sizes[1] ? self.sizes[0] : self.sizes[1];
    if (n > 256 && fault(Fault::trace_one_block)) n = 256;
    const int64_t step = self.strides[0] + self.strides[1];
    for (int64_t i = 0; i < n; ++i) sum = added(sum, convert<Sum>(load<T>(self.data + i * step)));
    if constexpr (std::is_integral_v<T>) {
      if (out_dtype == DType::i64) return store<int64_t>(out, sum);
    }
    store<T>(out, convert<T>(sum));
  });
}

}  // namespace refnpu
