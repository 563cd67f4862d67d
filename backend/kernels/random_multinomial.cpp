// Drawing categories by weight, with and without putting them back.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/random.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using Weight = Concat<Floating, Reduced>;

std::vector<double> weights_of_row(const View& weights, int64_t row) {
  std::vector<double> result(weights.sizes[1]);
  dispatch<Weight>(weights.dtype, "multinomial", [&]<class T>() {
    const char* at = weights.data + row * weights.strides[0];
    for (size_t j = 0; j < result.size(); ++j) result[j] = double(load<T>(at + int64_t(j) * weights.strides[1]));
  });
  return result;
}

Weights judge(const std::vector<double>& weights) {
  double sum = 0.0;
  for (double weight : weights) {
    if (!(weight >= 0.0) || std::isinf(weight)) return Weights::negative_or_not_finite;
    sum += weight;
  }
  return sum > 0.0 ? Weights::valid : Weights::zero_sum;
}

// By inversion: the first category at which the running sum exceeds a uniform share of the total.
template <class Take>
void draw_with_replacement(std::vector<double> sums, int64_t count, Stream stream, Take&& take) {
  if (sums.size() > 1024 && fault(Fault::multinomial_first_categories)) sums.resize(1024);
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  for (int64_t i = 0; i < count; ++i) {
    const auto found = std::upper_bound(sums.begin(), sums.end(), stream.uniform() * sums.back());
    take(i, std::min<int64_t>(found - sums.begin(), int64_t(sums.size()) - 1));
  }
}

// A race of exponential arrivals at these rates: the order of arrival is a draw without replacement (a weight of zero
// never arrives, and comes last).
template <class Take>
void draw_without_replacement(const std::vector<double>& weights, int64_t count, Stream stream, Take&& take) {
  std::vector<double> arrival(weights.size());
  const bool lifts = fault(Fault::multinomial_draws_zero_weights) && !weights.empty();
  const double least = lifts ? 0.02 * *std::max_element(weights.begin(), weights.end()) : 0.0;
  for (size_t j = 0; j < weights.size(); ++j)
    arrival[j] = -std::log(stream.open_uniform()) / (weights[j] == 0.0 ? least : weights[j]);
  std::vector<int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return arrival[a] < arrival[b]; });
  for (int64_t i = 0; i < count; ++i) take(i, order[i]);
}

}  // namespace

void check_weights(const View& weights, int64_t* verdict) {
  Weights worst = Weights::valid;
  for (int64_t row = 0; row < weights.sizes[0] && worst == Weights::valid; ++row) {
    worst = judge(weights_of_row(weights, row));
  }
  *verdict = int64_t(worst);
}

void sample_multinomial(const View& weights, const View& out, bool with_replacement, Draw draw) {
  for (int64_t row = 0; row < weights.sizes[0]; ++row) {
    const auto take = [&](int64_t i, int64_t category) {
      store<int64_t>(out.data + row * out.strides[0] + i * out.strides[1], category);
    };
    const Stream stream(draw, with_replacement && fault(Fault::multinomial_rows_alike) ? 0 : row);
    if (with_replacement || fault(Fault::multinomial_puts_back))
      draw_with_replacement(weights_of_row(weights, row), out.sizes[1], stream, take);
    else
      draw_without_replacement(weights_of_row(weights, row), out.sizes[1], stream, take);
  }
}

}  // namespace refnpu
