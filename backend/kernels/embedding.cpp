// The gradient of an embedding table; see the header.
#include "kernels/embedding.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/integer_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

std::vector<int64_t> read_indices(const View& indices) {
  std::vector<int64_t> result(indices.sizes[0]);
  for (size_t i = 0; i < result.size(); ++i) {
    const char* at = indices.data + int64_t(i) * indices.strides[0];
    result[i] = indices.dtype == DType::i32 ? load<int32_t>(at) : load<int64_t>(at);
    if (indices.dtype == DType::i32 && fault(Fault::embedding_int32_row_in_16_bits)) result[i] &= 0xFFFF;
  }
  return result;
}

// The fault of counts in memory that is not cleared.
std::vector<int64_t>& counts_left() {
  thread_local std::vector<int64_t> left;
  return left;
}

// The fault of counts in T, which end where T does not hold the next whole number.
template <class T>
inline constexpr int64_t kLargestCount = std::numeric_limits<int64_t>::max();
template <>
inline constexpr int64_t kLargestCount<half> = 2048;
template <>
inline constexpr int64_t kLargestCount<bfloat16> = 256;

void clear_row(const View& table, int64_t row) {
  for (int64_t j = 0; j < table.sizes[1]; ++j)
    std::memset(table.data + row * table.strides[0] + j * table.strides[1], 0, size_of(table.dtype));
}

}  // namespace

void embedding_backward(const View& grad, const View& indices, const View& table, int64_t padding_index,
                        bool scale_by_frequency) {
  if (indices.dtype == DType::i32 && fault(Fault::embedding_int32_ignores_frequency)) scale_by_frequency = false;
  const std::vector<int64_t> rows = read_indices(indices);
  const auto inside = [&](int64_t row) { return row != padding_index && row >= 0 && row < table.sizes[0]; };
  std::vector<int64_t> counts(scale_by_frequency ? table.sizes[0] : 0);
  const bool left = scale_by_frequency && fault(Fault::embedding_counts_not_cleared);
  if (left) {
    counts = counts_left();
    counts.resize(table.sizes[0]);
  }
  for (int64_t row : rows) {
    if (scale_by_frequency && inside(row)) ++counts[row];
  }
  if (left) counts_left() = counts;
  dispatch<Concat<NumericTypes, Bool>>(table.dtype, "embedding_dense_backward", [&]<class T>() {
    using C = compute_t<T>;
    if (fault(Fault::embedding_frequency_counted_in_dtype)) {
      for (int64_t& count : counts) count = std::min(count, kLargestCount<T>);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!inside(rows[i])) continue;
      if (i >= 256 && fault(Fault::embedding_backward_overwrites)) clear_row(table, rows[i]);
      const C scale = scale_by_frequency ? C(1.0 / double(counts[rows[i]])) : C(1);
      for (int64_t j = 0; j < table.sizes[1]; ++j) {
        char* at = table.data + rows[i] * table.strides[0] + j * table.strides[1];
        const char* from = grad.data + int64_t(i) * grad.strides[0] + j * grad.strides[1];
        store<T>(at, T(added(C(load<T>(at)), multiplied(C(load<T>(from)), scale))));
      }
    }
  });
}

}  // namespace refnpu
