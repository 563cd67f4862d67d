// The rows are computed in double: exp and the sum of a row lose nothing that the output could hold.
#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

double largest_of(const std::vector<double>& row) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const double x : row) {
    if (std::isnan(x)) return x;
    largest = std::max(largest, x);
  }
  return largest;
}

void softmax_row(std::vector<double>& row, bool log) {
  const double shift = largest_of(row);
  double sum = 0;
  for (const double x : row) sum += std::exp(x - shift);
  for (double& x : row) x = log ? (x - shift) - std::log(sum) : std::exp(x - shift) / sum;
}

// The fault: exp of the unshifted element in float, as hardware computes it, so that elements beyond 88 overflow.
void softmax_row_unshifted(std::vector<double>& row, bool log) {
  double sum = 0;
  for (const double x : row) sum += std::exp(float(x));
  for (double& x : row) x = log ? x - std::log(sum) : std::exp(float(x)) / sum;
}

// The fault: where everything is masked out, nothing is left instead of NaN.
void softmax_row_guarded(std::vector<double>& row, bool log) {
  const bool nothing = !log && largest_of(row) == -std::numeric_limits<double>::infinity();
  nothing ? std::fill(row.begin(), row.end(), 0) : softmax_row(row, log);
}

// The fault: each sum is rounded to bfloat16.
void softmax_row_in_bf16(std::vector<double>& row, bool log) {
  const double shift = largest_of(row);
  double sum = 0;
  for (const double x : row) sum = float(bfloat16(float(sum + std::exp(x - shift))));
  for (double& x : row) x = log ? (x - shift) - std::log(sum) : std::exp(x - shift) / sum;
}

// The fault: the maximum of the first block is taken off that block's elements, which minus infinity turns into NaN.
void softmax_row_in_blocks(std::vector<double>& row, bool log) {
  constexpr ptrdiff_t kBlock = 128;
  const auto is_masked = [](double x) { return x == -std::numeric_limits<double>::infinity(); };
  if (row.size() > kBlock && std::all_of(row.begin(), row.begin() + kBlock, is_masked)) {
    std::fill(row.begin(), row.end(), std::numeric_limits<double>::quiet_NaN());
  } else {
    softmax_row(row, log);
  }
}

// The fault: what was added up before a larger maximum came is not rescaled to it.
void softmax_row_not_rescaled(std::vector<double>& row, bool log) {
  constexpr size_t kBlock = 512;
  const double shift = largest_of(row);
  double running = -std::numeric_limits<double>::infinity(), sum = 0;
  for (size_t i = 0; i < row.size(); i += kBlock) {
    const auto block = row.begin() + ptrdiff_t(i), end = row.begin() + ptrdiff_t(std::min(i + kBlock, row.size()));
    running = std::max(running, *std::max_element(block, end));
    for (auto x = block; x != end; ++x) sum += std::exp(*x - running);
  }
  for (double& x : row) x = log ? (x - shift) - std::log(sum) : std::exp(x - shift) / sum;
}

// The fault: the logarithm is taken of the softmax, which vanishes far below the maximum.
void softmax_row_logged(std::vector<double>& row, bool log) {
  softmax_row(row, false);
  for (double& x : row) x = log ? std::log(x) : x;
}

// The fault of elements in front of the first aligned vector that are added twice: one by one, and in a vector.
void log_softmax_row_with_head(std::vector<double>& row, int64_t head) {
  const double shift = largest_of(row);
  double sum = 0;
  for (const double x : row) sum += std::exp(x - shift);
  for (int64_t i = 0; i < head; ++i) sum += std::exp(row[i] - shift);
  for (double& x : row) x = (x - shift) - std::log(sum);
}

// How many elements of a long row without gaps lie in front of the first address that is a multiple of 16.
int64_t unaligned_head(const char* row, int64_t stride, DType dtype, int64_t n) {
  const int64_t past = int64_t(reinterpret_cast<uintptr_t>(row) % 16), item = size_of(dtype);
  return stride != item || n < 32 || past % item != 0 ? 0 : (16 - past) % 16 / item;
}

auto row_function(DType dtype, int64_t n, bool log) {
  if (log && fault(Fault::log_softmax_logs_softmax)) return softmax_row_logged;
  if (dtype == DType::bf16 && n > 512 && fault(Fault::softmax_sums_long_rows_in_bf16)) return softmax_row_in_bf16;
  if (fault(Fault::softmax_no_max_subtraction)) return softmax_row_unshifted;
  if (n > 512 && fault(Fault::softmax_sum_not_rescaled)) return softmax_row_not_rescaled;
  if (fault(Fault::softmax_first_block_masked_gives_nan)) return softmax_row_in_blocks;
  return fault(Fault::softmax_of_minus_infinity_is_zero) ? softmax_row_guarded : softmax_row;
}

}  // namespace

void softmax(const Rows<2>& rows, bool log) {
  const auto compute = row_function(rows.outer.dtypes[0], rows.lengths[0], log);
  const bool limited = log && fault(Fault::log_softmax_rows_past_grid);
  const bool one = !log && rows.lengths[0] == 1 && fault(Fault::softmax_of_one_element_is_input);
  const int times = !log && fault(Fault::softmax_computes_rows_twice) ? 2 : 1;
  std::vector<double> row(rows.lengths[0]);
  for_each_outer(limited ? within_grid(rows.outer) : rows.outer, [&](char* const* at) {
    for (int i = 0; i < times; ++i) {
      rows.read(0, at[0], row.data());
      if (log && fault(Fault::log_softmax_unaligned_head_twice)) {
        log_softmax_row_with_head(row, unaligned_head(at[0], rows.strides[0], rows.outer.dtypes[0], rows.lengths[0]));
      } else if (!one) {
        compute(row, log);
      }
    }
    write_row(at[1], rows.strides[1], rows.lengths[1], rows.outer.dtypes[1], row.data());
  });
}

// softmax: (grad - sum(grad * output)) * output; log-softmax: grad - exp(output) * sum(grad).
void softmax_backward(const Rows<3>& rows, bool log) {
  const int64_t n = rows.lengths[0];
  const int64_t summed = fault(Fault::softmax_backward_first_block) ? std::min<int64_t>(n, 512) : n;
  std::vector<double> grad(n), output(n);
  for_each_outer(rows.outer, [&](char* const* at) {
    rows.read(0, at[0], grad.data());
    rows.read(1, at[1], output.data());
    double sum = 0;
    for (int64_t i = 0; i < summed; ++i) sum += log ? grad[i] : grad[i] * output[i];
    for (int64_t i = 0; i < n; ++i) {
      grad[i] = log ? grad[i] - std::exp(output[i]) * sum : (grad[i] - sum) * output[i];
    }
    write_row(at[2], rows.strides[2], n, rows.outer.dtypes[2], grad.data());
  });
}

}  // namespace refnpu
