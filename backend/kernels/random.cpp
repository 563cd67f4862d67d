// Random fills by distribution; see the header.
#include "kernels/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "kernels/index_move.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using Real = Concat<Floating, Reduced>;
using Whole = Concat<Integral, Unsigned, Bool>;

template <class T>
inline constexpr int kDigits = std::numeric_limits<T>::digits;
template <>
inline constexpr int kDigits<half> = 11;
template <>
inline constexpr int kDigits<bfloat16> = 8;

template <class T>
inline constexpr double kSmallestNormal = double(std::numeric_limits<T>::min());
template <>
inline constexpr double kSmallestNormal<half> = 0x1p-14;
template <>
inline constexpr double kSmallestNormal<bfloat16> = 0x1p-126;

// Subnormal.
template <class T>
inline constexpr double kSmallest = kSmallestNormal<T> / double(uint64_t(1) << (kDigits<T> - 1));

// The elements of views of one shape in row-major order, each with its stream.
template <int N, class F>
void for_each_draw(const std::array<View, N>& views, Draw draw, F&& f) {
  int64_t element = 0;
  for_each_row(row_major<N>(views), [&](char* const* data, const int64_t* strides, int64_t n) {
    if (strides[0] != size_of(views[0].dtype) && fault(Fault::strided_rows_drawn_alike)) element = 0;
    for (int64_t i = 0; i < n; ++i) {
      std::array<char*, N> at;
      for (int k = 0; k < N; ++k) at[k] = data[k] + i * strides[k];
      Stream stream(draw, element++);
      f(at, stream);
    }
  });
}

// Fills with draw_one(stream), a double, converted to one of the Types.
template <class Types, class F>
void fill(const View& out, const char* name, Draw draw, F&& draw_one) {
  dispatch<Types>(out.dtype, name, [&]<class T>() {
    for_each_draw<1>({out}, draw, [&](auto at, Stream& stream) { store<T>(at[0], convert<T>(draw_one(stream))); });
  });
}

// Box and Muller's transform of two uniform numbers.
double standard_normal(Stream& stream) {
  const double radius = std::sqrt(-2.0 * std::log(stream.open_uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * stream.uniform());
}

template <class F>
void sample(const View& out, const View& parameter, const char* name, Draw draw, F&& draw_one) {
  dispatch<Real>(out.dtype, name, [&]<class T>() {
    for_each_draw<2>({out, parameter}, draw, [&](auto at, Stream& stream) {
      store<T>(at[0], convert<T>(draw_one(stream, double(load<T>(at[1])))));
    });
  });
}

// From here on counts are drawn from the normal distribution that they approach: rejection would not end.
constexpr double kLarge = 1e9;

double gaussian(double mean, double deviation, Stream& stream) {
  return std::isinf(mean) ? mean : mean + deviation * standard_normal(stream);
}

double binomial(Stream& stream, double count, double p) {
  if (count <= 0.0 || p <= 0.0) return 0.0;
  if (p >= 1.0) return count;
  if (!(p == p && count == count)) return std::numeric_limits<double>::quiet_NaN();
  if (count > kLarge)
    return std::clamp(std::round(gaussian(count * p, std::sqrt(count * p * (1.0 - p)), stream)), 0.0, count);
  return double(std::binomial_distribution<int64_t>(int64_t(count), p)(stream));
}

}  // namespace

void fill_uniform(const View& out, Draw draw, double from, double to) {
  const bool includes_end = fault(Fault::uniform_includes_one);
  dispatch<Real>(out.dtype, "uniform", [&]<class T>() {
    const T end = convert<T>(to);
    const bool rounds = sizeof(T) == 2 && fault(Fault::uniform_of_halves_rounds_to_end);
    for_each_draw<1>({out}, draw, [&](auto at, Stream& stream) {
      const double unit = includes_end ? double(stream.below(2)) : stream.uniform(rounds ? 24 : kDigits<T>);
      const T value = convert<T>(from + unit * (to - from));
      // Rounding may reach the excluded end; the included one takes its place.
      store<T>(at[0], value >= end && !includes_end && !rounds ? convert<T>(from) : value);
    });
  });
}

void fill_normal(const View& out, Draw draw, double mean, double std) {
  fill<Real>(out, "normal", draw, [=](Stream& stream) { return mean + std * standard_normal(stream); });
  if (out.numel() % 2 == 1 && fault(Fault::normal_drawn_in_pairs)) {
    char* last = out.data;
    for (int d = 0; d < out.ndim; ++d) last += (out.sizes[d] - 1) * out.strides[d];
    dispatch<Real>(out.dtype, "normal", [&]<class T>() { store<T>(last, convert<T>(mean)); });
  }
}

void fill_log_normal(const View& out, Draw draw, double mean, double std) {
  fill<Real>(out, "log_normal", draw, [=](Stream& stream) { return std::exp(mean + std * standard_normal(stream)); });
}

void fill_exponential(const View& out, Draw draw, double lambda) {
  const int64_t whole = out.numel() > 256 && fault(Fault::exponential_tail_alike) ? out.numel() / 256 * 256 : INT64_MAX;
  int64_t element = 0;
  dispatch<Real>(out.dtype, "exponential", [&]<class T>() {
    for_each_draw<1>({out}, draw, [&](auto at, Stream& stream) {
      if (element++ >= whole) stream = Stream(draw, 0);
      // Zero is not in the range, and torch.multinomial divides by these draws; rounding to T may reach it.
      const double unit = std::max(-std::log(stream.open_uniform()), kSmallest<T>);
      store<T>(at[0], convert<T>(unit / lambda));
    });
  });
}

void fill_geometric(const View& out, Draw draw, double p) {
  const bool failures = fault(Fault::geometric_counts_failures);
  fill<Concat<Real, Integral>>(out, "geometric", draw, [=](Stream& stream) {
    return std::ceil(std::log(stream.open_uniform()) / std::log1p(-p)) - (failures ? 1.0 : 0.0);
  });
}

void fill_cauchy(const View& out, Draw draw, double median, double sigma) {
  fill<Real>(out, "cauchy", draw, [=](Stream& stream) {
    return median + sigma * std::tan(std::numbers::pi * (stream.open_uniform() - 0.5));
  });
}

void fill_integers(const View& out, Draw draw, uint64_t range, int64_t base) {
  const bool narrow = fault(Fault::random_from_in_32_bits);
  dispatch<Concat<Whole, Real>>(out.dtype, "random", [&]<class T>() {
    for_each_draw<1>({out}, draw, [&](auto at, Stream& stream) {
      const uint64_t drawn = stream.below(range);
      store<T>(at[0], convert<T>(int64_t(uint64_t(base) + (narrow ? uint32_t(drawn) : drawn))));
    });
  });
}

void fill_natural(const View& out, Draw draw) {
  dispatch<Concat<Whole, Real>>(out.dtype, "random", [&]<class T>() {
    uint64_t largest = uint64_t(1) << (kDigits<T> & 63);
    if constexpr (std::is_integral_v<T>) largest = uint64_t(std::numeric_limits<T>::max());
    if (std::is_same_v<T, half> && fault(Fault::random_of_half_past_its_digits)) largest = uint64_t(1) << 24;
    if (std::is_same_v<T, uint8_t> && fault(Fault::random_of_bytes_signed)) largest = 127;
    for_each_draw<1>({out}, draw,
                     [&](auto at, Stream& stream) { store<T>(at[0], convert<T>(stream.below(largest + 1))); });
  });
}

void fill_bernoulli(const View& out, Draw draw, double p) {
  const bool repeats = fault(Fault::bernoulli_repeats_after_65536);
  fill<AllTypes>(out, "bernoulli", draw, [=, element = int64_t(0)](Stream& stream) mutable {
    if (repeats) stream = Stream(draw, element++ % 65536);
    return stream.uniform() < p ? 1.0f : 0.0f;
  });
}

void fill_bernoulli(const View& out, const View& p, Draw draw) {
  const auto probability = [&](const char* at) {
    return dispatch<Real>(p.dtype, "bernoulli", [&]<class P>() { return double(load<P>(at)); });
  };
  dispatch_all(out.dtype, "bernoulli", [&]<class T>() {
    for_each_draw<2>({out, p}, draw, [&](auto at, Stream& stream) {
      const char* chance = fault(Fault::bernoulli_of_first_probability) ? p.data : at[1];
      store<T>(at[0], convert<T>(stream.uniform() < probability(chance) ? 1.0f : 0.0f));
    });
  });
}

void sample_poisson(const View& out, const View& rate, Draw draw) {
  sample(out, rate, "poisson", draw, [](Stream& stream, double lambda) {
    if (lambda > kLarge) return std::round(gaussian(lambda, std::sqrt(lambda), stream));
    return lambda > 0.0 ? double(std::poisson_distribution<int64_t>(lambda)(stream)) : 0.0;
  });
}

void sample_gamma(const View& out, const View& alpha, Draw draw) {
  const double smallest = dispatch<Real>(out.dtype, "standard_gamma", []<class T>() { return kSmallestNormal<T>; });
  sample(out, alpha, "standard_gamma", draw, [=](Stream& stream, double shape) {
    if (shape != shape) return shape;
    return std::max(smallest, shape > 0.0 ? std::gamma_distribution<double>(shape)(stream) : 0.0);
  });
}

void sample_binomial(const View& out, const View& count, const View& p, Draw draw) {
  dispatch<Real>(out.dtype, "binomial", [&]<class T>() {
    for_each_draw<3>({out, count, p}, draw, [&](auto at, Stream& stream) {
      store<T>(at[0], convert<T>(binomial(stream, double(load<T>(at[1])), double(load<T>(at[2])))));
    });
  });
}

void random_permutation(const View& out, Draw draw) {
  using Types = Concat<RealTypes, Unsigned>;
  const bool in_blocks = fault(Fault::randperm_shuffles_blocks);
  dispatch<Types>(out.dtype, "randperm", [&]<class T>() {
    const auto at = [&](int64_t i) { return out.data + i * out.strides[0]; };
    for (int64_t i = 0; i < out.sizes[0]; ++i) store<T>(at(i), convert<T>(i));
    for (int64_t i = out.sizes[0] - 1 - fault(Fault::randperm_leaves_last); i > 0; --i) {
      const int64_t first = in_blocks ? i / 4096 * 4096 : 0;
      const int64_t j = first + int64_t(Stream(draw, i).below(uint64_t(i - first) + 1));
      const T held = load<T>(at(i));
      store<T>(at(i), load<T>(at(j)));
      store<T>(at(j), held);
    }
  });
}

}  // namespace refnpu
