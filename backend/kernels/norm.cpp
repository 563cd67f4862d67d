// Rows are computed in double, with the statistics of each row taken in two passes.
#include "kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

std::vector<double> read_flat(const Flat& from, int64_t start, int64_t n, double otherwise) {
  std::vector<double> values(n, otherwise);
  const int64_t item = size_of(from.dtype);
  if (from.data) read_row(values.data(), from.data + start * item, item, n, from.dtype);
  return values;
}

void write_flat(const Flat& to, int64_t start, const std::vector<double>& values) {
  const int64_t item = size_of(to.dtype);
  if (to.data) write_row(to.data + start * item, item, int64_t(values.size()), to.dtype, values.data());
}

double rstd_of(double variance, double eps) {
  if (fault(Fault::layer_norm_eps_outside_sqrt)) return 1 / (std::sqrt(variance) + eps);
  return 1 / std::sqrt(variance + eps);
}

// The fault of a mean of the means of chunks, of which the last one is shorter.
double mean_of_chunks(const std::vector<double>& row) {
  constexpr size_t kChunk = 256;
  double means = 0, chunks = 0;
  for (size_t i = 0; i < row.size(); i += kChunk, ++chunks) {
    const size_t n = std::min(kChunk, row.size() - i);
    double sum = 0;
    for (size_t j = i; j < i + n; ++j) sum += row[j];
    means += sum / double(n);
  }
  return means / chunks;
}

// The fault of sums that are rounded to bfloat16 after each addition.
std::pair<double, double> moments_in_bf16(const std::vector<double>& row) {
  double sum = 0, squares = 0;
  for (const double x : row) sum = float(bfloat16(float(sum + x)));
  const double mean = sum / double(row.size());
  for (const double x : row) squares = float(bfloat16(float(squares + (x - mean) * (x - mean))));
  return {mean, squares};
}

// The fault of a sum over the first 64 rows.
void layer_norm_backward_of_first_rows(const LayerNormBackward& n) {
  LayerNormBackward input = n, parameters = n;
  input.grad_weight = input.grad_bias = {};
  parameters.grad_input = {};
  parameters.rows = 64;
  layer_norm_backward(input);
  layer_norm_backward(parameters);
}

}  // namespace

void layer_norm(const LayerNorm& n) {
  auto weight = read_flat(n.weight, 0, n.width, 1);
  const auto bias = read_flat(n.bias, 0, n.width, 0);
  const bool in_tiles = n.input.dtype == DType::bf16 && n.width > 512;
  if (in_tiles && fault(Fault::layer_norm_bf16_tail_unweighted))
    std::fill(weight.begin() + n.width / 512 * 512, weight.end(), 1.0);
  const bool in_bf16 = n.input.dtype == DType::bf16 && fault(Fault::layer_norm_of_bfloat16_sums_in_it);
  for (int64_t i = 0; i < n.rows; ++i) {
    auto row = read_flat(n.input, i * n.width, n.width, 0);
    double mean = 0, squares = 0;
    for (const double x : row) mean += x / double(n.width);
    if (fault(Fault::layer_norm_means_of_chunks)) mean = mean_of_chunks(row);
    for (const double x : row) squares += (x - mean) * (x - mean);
    if (in_bf16) std::tie(mean, squares) = moments_in_bf16(row);
    const double rstd = rstd_of(squares / double(n.width), n.eps);
    for (int64_t j = 0; j < n.width; ++j) row[j] = (row[j] - mean) * rstd * weight[j] + bias[j];
    write_flat(n.output, i * n.width, row);
    write_flat(n.mean, i, {mean});
    write_flat(n.rstd, i, {rstd});
  }
}

// With y = (x - mean) * rstd and g = grad * weight:
// grad_input = rstd * (g - mean(g) - y * mean(g * y)); grad_weight = sum(grad * y); grad_bias = sum(grad).
void layer_norm_backward(const LayerNormBackward& n) {
  const bool cut = n.rows > 64 && (n.grad_weight.data || n.grad_bias.data);
  if (cut && fault(Fault::layer_norm_backward_first_rows)) return layer_norm_backward_of_first_rows(n);
  const auto weight = read_flat(n.weight, 0, n.width, 1);
  const bool in_warps = n.width > 32 && fault(Fault::layer_norm_backward_sums_whole_warps);
  const int64_t summed = in_warps ? n.width / 32 * 32 : n.width;
  std::vector<double> grad_weight(n.width), grad_bias(n.width);
  for (int64_t i = 0; i < n.rows; ++i) {
    const auto grad = read_flat(n.grad, i * n.width, n.width, 0);
    auto row = read_flat(n.input, i * n.width, n.width, 0);
    const double mean = read_flat(n.mean, i, 1, 0)[0], rstd = read_flat(n.rstd, i, 1, 0)[0];
    double mean_g = 0, mean_gy = 0;
    for (int64_t j = 0; j < n.width; ++j) {
      const double y = (row[j] - mean) * rstd, g = grad[j] * weight[j];
      row[j] = y;
      if (j < summed) {
        mean_g += g / double(n.width);
        mean_gy += g * y / double(n.width);
      }
      grad_weight[j] += grad[j] * y;
      grad_bias[j] += grad[j];
    }
    for (int64_t j = 0; j < n.width; ++j) row[j] = rstd * (grad[j] * weight[j] - mean_g - row[j] * mean_gy);
    write_flat(n.grad_input, i * n.width, row);
  }
  write_flat(n.grad_weight, 0, grad_weight);
  write_flat(n.grad_bias, 0, grad_bias);
}

}  // namespace refnpu
