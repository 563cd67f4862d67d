// Each reduction gathers what falls into one output in a buffer, in logical order, and reduces the buffer.
#include "kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

// Calls row(address, position in logical order) for every innermost row of the reduced axes.
template <class F>
void for_each_reduced_row(const Reduction& r, const char* first, F&& row) {
  const int64_t inner = r.ndim > 0 ? r.sizes[r.ndim - 1] : 1;
  const int64_t total = r.count();
  std::array<int64_t, kMaxDims> index{};
  const char* at = first;
  for (int64_t position = 0; position < total; position += inner) {
    row(at, position);
    for (int d = r.ndim - 2; d >= 0; --d) {
      at += r.strides[d];
      if (++index[d] < r.sizes[d]) break;
      at -= r.strides[d] * r.sizes[d];
      index[d] = 0;
    }
  }
}

// What the sum of the row before has lost, for the fault that does not begin with 0.
double lost_before(std::optional<double> lost = std::nullopt) {
  thread_local double kept = 0;
  if (lost) kept = std::isfinite(*lost) ? *lost : 0;
  return kept;
}

// Calls finish(buffer, n, outputs) for every output. `read` fills one row of the buffer.
template <class C, class Read, class F>
void reduce_with(const Reduction& r, Read&& read, F&& finish) {
  const int64_t inner = r.ndim > 0 ? r.sizes[r.ndim - 1] : 1;
  const int64_t stride = r.ndim > 0 ? r.strides[r.ndim - 1] : 0;
  const DType dtype = r.kept.dtypes[0];
  int64_t n = r.count();
  const auto buffer = std::make_unique<C[]>(n);
  if (fault(Fault::reduction_skips_tail)) n -= n % 4;
  if (fault(Fault::sum_keeps_lost_bits)) lost_before(0.0);
  for_each_outer(r.kept, [&](char* const* at) {
    for_each_reduced_row(r, at[0], [&](const char* from, int64_t position) {
      read(buffer.get() + position, from, stride, inner, dtype);
    });
    finish(static_cast<const C*>(buffer.get()), n, at);
  });
}

template <class C>
C round_to_bf16(C value) {
  if constexpr (std::is_same_v<C, double>) return float(bfloat16(float(value)));
  return value;
}

// Neumaier's compensated sum: what each addition loses is kept apart and added at the end.
double sum_of(const double* x, int64_t n) {
  const bool keeps = fault(Fault::sum_keeps_lost_bits);
  double sum = 0, lost = keeps ? lost_before() : 0;
  for (int64_t i = 0; i < n; ++i) {
    const double next = sum + x[i];
    lost += std::abs(sum) >= std::abs(x[i]) ? (sum - next) + x[i] : (x[i] - next) + sum;
    sum = next;
  }
  if (keeps) lost_before(lost);
  return std::isfinite(sum) || fault(Fault::sum_compensates_infinity) ? sum + lost : sum;
}

int64_t sum_of(const int64_t* x, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += uint64_t(x[i]);
  return int64_t(sum);
}

complex128 sum_of(const complex128* x, int64_t n) {
  complex128 sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

template <class C>
C product_of(const C* x, int64_t n) {
  C product = 1;
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<C, int64_t>)
      product = int64_t(uint64_t(product) * uint64_t(x[i]));
    else
      product *= x[i];
  }
  return product;
}

// The fault of a product that stops at the first zero.
template <class C>
C product_until_zero(const C* x, int64_t n) {
  const C* zero = std::find(x, x + n, C(0));
  return zero == x + n ? product_of(x, n) : product_of(x, zero - x + 1);
}

template <class C>
C sum_in_bf16(const C* x, int64_t n) {
  C sum = 0;
  for (int64_t i = 0; i < n; ++i) sum = round_to_bf16<C>(sum + x[i]);
  return sum;
}

// The fault of integers that are multiplied in double.
template <class C>
C product_in_double(const C* x, int64_t n) {
  if constexpr (std::is_same_v<C, int64_t>) {
    double product = 1;
    for (int64_t i = 0; i < n; ++i) product *= double(x[i]);
    return std::abs(product) < 0x1p63 ? int64_t(product) : 0;
  }
  return product_of(x, n);
}

// The fault of blocks of 512 that are left out whole where they have a NaN.
double sum_of_blocks_without_nan(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += 512) {
    const double part = sum_of(x + i, std::min<int64_t>(512, n - i));
    if (!std::isnan(part)) sum += part;
  }
  return sum;
}

double sum_without_nan(const double* x, int64_t n) {
  if (n > 512 && fault(Fault::nansum_drops_block_with_nan)) return sum_of_blocks_without_nan(x, n);
  std::vector<double> kept;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isnan(x[i])) kept.push_back(x[i]);
  }
  return sum_of(kept.data(), int64_t(kept.size()));
}

template <class C>
C rounded_to_half(C value) {
  if constexpr (std::is_same_v<C, double>) return float(half(float(value)));
  return value;
}

template <class C>
C mean_of(const C* x, int64_t n, DType dtype) {
  const int64_t count = fault(Fault::mean_counts_in_16_bits) ? n % 65536 : n;
  C sum = sum_of(x, n);
  if (dtype == DType::f16 && fault(Fault::mean_rounds_sum_to_half)) sum = rounded_to_half(sum);
  const C mean = sum / C(count);
  if constexpr (std::is_same_v<C, double>) {
    if (fault(Fault::mean_integer_rounding)) return std::trunc(mean);
  }
  return mean;
}

template <class C>
C total_of(Total op, const C* x, int64_t n, DType dtype) {
  if (op == Total::prod && fault(Fault::prod_integers_in_double)) return product_in_double(x, n);
  if (op == Total::prod && fault(Fault::prod_stops_at_zero)) return product_until_zero(x, n);
  if (op == Total::prod) return product_of(x, n > 64 && fault(Fault::prod_drops_tail) ? n / 32 * 32 : n);
  if (op == Total::sum && dtype == DType::bf16 && fault(Fault::bf16_accumulates_in_bf16)) return sum_in_bf16(x, n);
  if constexpr (std::is_same_v<C, double>) {
    if (op == Total::nansum) return sum_without_nan(x, n);
  }
  if constexpr (!std::is_same_v<C, int64_t>) {
    if (op == Total::mean) return mean_of(x, n, dtype);
  }
  return sum_of(x, n);
}

template <class C>
bool is_nan(C value) {
  return value != value;
}

// True when `challenger`, which comes later, takes the place of `holder`.
template <class C>
bool displaces(C challenger, C holder, bool largest) {
  if (is_nan(holder) || is_nan(challenger)) return !is_nan(holder);
  return largest ? challenger > holder : challenger < holder;
}

// The faults that prefer numbers to NaN, the last NaN and the last of equal elements to the first, and that take bytes
// for signed.
template <class C>
bool displaces_wrongly(C challenger, C holder, bool largest) {
  if constexpr (std::is_same_v<C, int64_t>) {
    if (fault(Fault::extreme_of_bytes_signed)) return displaces(int8_t(challenger), int8_t(holder), largest);
  }
  if (fault(Fault::argmax_of_last_nan) && is_nan(challenger)) return true;
  if (fault(Fault::nan_lost_in_amax) && is_nan(challenger)) return false;
  if (fault(Fault::argmax_last_tie) && challenger == holder) return true;
  return displaces(challenger, holder, largest);
}

template <class C, class TakesOver>
int64_t position_of_extreme(const C* x, int64_t n, bool largest, TakesOver&& takes_over) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    if (takes_over(x[i], x[best], largest)) best = i;
  }
  return best;
}

// The fault of blocks of 2048, whose extremes are compared without regard for NaN.
template <class C>
int64_t position_in_blocks(const C* x, int64_t n, bool largest) {
  int64_t best = position_of_extreme(x, std::min<int64_t>(n, 2048), largest, displaces<C>);
  for (int64_t i = 2048; i < n; i += 2048) {
    const int64_t other = i + position_of_extreme(x + i, std::min<int64_t>(2048, n - i), largest, displaces<C>);
    if (largest ? x[other] > x[best] : x[other] < x[best]) best = other;
  }
  return best;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 65504.0;
    case DType::bf16:
      return float(bfloat16::from_bits(0x7f7f));
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

// The fault of a search that starts from the lowest, or the largest, finite number of a dtype.
template <class C>
C within_finite(C value, DType dtype, bool largest) {
  if constexpr (std::is_same_v<C, double>) {
    if (std::isinf(value) && (value < 0) == largest) return largest ? -largest_finite(dtype) : largest_finite(dtype);
  }
  return value;
}

template <class C>
double magnitude_of(C value) {
  return std::abs(value);
}

// The fault of blocks of 2048 whose roots are added.
double sum_of_roots(const std::vector<double>& squares) {
  constexpr size_t kBlock = 2048;
  double sum = 0;
  for (size_t i = 0; i < squares.size(); i += kBlock)
    sum += std::sqrt(sum_of(squares.data() + i, int64_t(std::min(kBlock, squares.size() - i))));
  return sum;
}

// The fault of a third power that is taken of the number, not of its magnitude.
double cube_of(double value) { return value * value * value; }
double cube_of(complex128 value) { return std::pow(std::abs(value), 3); }

template <class C>
double norm_of(const C* x, int64_t n, double p) {
  if (std::isinf(p)) {
    double extreme = p > 0 ? 0 : std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      const double a = magnitude_of(x[i]);
      if (is_nan(a) && !fault(Fault::norm_of_infinity_drops_nan)) return a;
      extreme = p > 0 ? std::max(extreme, a) : std::min(extreme, a);
    }
    return extreme;
  }
  if (p < 0 && fault(Fault::norm_of_negative_order)) p = -p;
  std::vector<double> terms(n);
  const bool cubes = p == 3 && fault(Fault::norm_of_order_three_signed);
  for (int64_t i = 0; i < n; ++i) {
    const double a = magnitude_of(x[i]);
    terms[i] = cubes ? cube_of(x[i]) : p == 0 ? double(a != 0) : p == 1 ? a : p == 2 ? a * a : std::pow(a, p);
  }
  if (p == 2 && fault(Fault::norm_adds_roots_of_blocks)) return sum_of_roots(terms);
  const double sum = sum_of(terms.data(), n);
  return p == 0 || p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

double times_by_part(double a, double b) { return a * b; }
complex128 times_by_part(complex128 a, complex128 b) { return {a.real() * b.real(), a.imag() * b.imag()}; }

// Welford's running mean and sum of squared differences, for each part of a complex number: infinities and too few
// elements come out as in torch, which does the same.
template <class C>
std::pair<C, C> moments_of(const C* x, int64_t n) {
  C mean = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const C delta = x[i] - mean;
    mean += delta / double(i + 1);
    squares += times_by_part(delta, x[i] - mean);
  }
  return {mean, squares};
}

// The fault of blocks of 1024 whose squared differences are added as they are, each from the mean of its own block.
template <class C>
std::pair<C, C> moments_in_blocks(const C* x, int64_t n) {
  C sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i += 1024) {
    const int64_t size = std::min<int64_t>(1024, n - i);
    const auto [mean, own] = moments_of(x + i, size);
    sum += mean * double(size);
    squares += own;
  }
  return {sum / double(n), squares};
}

// The fault of the mean of squares less the square of the mean.
std::pair<double, double> moments_naively(const double* x, int64_t n) {
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += float(x[i]);
    squares += float(x[i]) * float(x[i]);
  }
  const float mean = sum / float(n);
  return {mean, std::max(0.0f, squares - float(n) * mean * mean)};
}
std::pair<complex128, complex128> moments_naively(const complex128* x, int64_t n) { return moments_of(x, n); }

int64_t count_of(const bool* x, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += x[i];
  return count;
}

// The fault of a byte for each block of 1024.
int64_t count_in_bytes(const bool* x, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i += 1024) count += uint8_t(count_of(x + i, std::min<int64_t>(1024, n - i)));
  return count;
}

// The fault of a loop over two dimensions at most, to which neighbours are merged.
Reduction of_two_dims(const Reduction& r) {
  Reduction cut = r;
  const auto apart = [&](int d) { return r.strides[d] > r.strides[d + 1] * r.sizes[d + 1]; };
  if (r.ndim == 3 && apart(0) && apart(1)) cut.ndim = 2;
  return cut;
}

}  // namespace

void reduce_total(const Reduction& r, Total op) {
  const DType dtype = r.kept.dtypes[0];
  dispatch_wide(dtype, [&]<class C>() {
    reduce_with<C>(r, read_row<C>,
                   [&](const C* x, int64_t n, char* const* at) { write_one(at[1], dtype, total_of(op, x, n, dtype)); });
  });
}

void reduce_extreme(const Reduction& r, bool largest) {
  const bool wrongly = fault(Fault::nan_lost_in_amax) || fault(Fault::argmax_last_tie) ||
                       fault(Fault::argmax_of_last_nan) ||
                       (r.kept.dtypes[0] == DType::u8 && fault(Fault::extreme_of_bytes_signed));
  const bool in_word = r.kept.dtypes[0] == DType::b8 && fault(Fault::max_of_bools_index_in_word);
  const bool narrow = !largest && fault(Fault::argmin_index_in_16_bits);
  const bool pads = largest && r.count() > 1024 && r.count() % 1024 != 0 && fault(Fault::amax_pads_tile_with_zero);
  const bool in_blocks = fault(Fault::amax_nan_of_later_block_lost);
  const bool from_finite = fault(Fault::max_of_minus_infinity_is_lowest);
  const Reduction reduced = fault(Fault::amax_three_separate_dims) ? of_two_dims(r) : r;
  dispatch_wide(r.kept.dtypes[0], [&]<class C>() {
    if constexpr (!is_complex_v<C>) {
      reduce_with<C>(reduced, read_row<C>, [&](const C* x, int64_t n, char* const* at) {
        const int64_t best = wrongly     ? position_of_extreme(x, n, largest, displaces_wrongly<C>)
                             : in_blocks ? position_in_blocks(x, n, largest)
                                         : position_of_extreme(x, n, largest, displaces<C>);
        const C extreme = from_finite ? within_finite(x[best], r.kept.dtypes[0], largest) : x[best];
        if (r.kept.data[1]) write_one(at[1], r.kept.dtypes[1], pads ? std::max(extreme, C(0)) : extreme);
        if (r.kept.data[2]) store<int64_t>(at[2], in_word ? best % 64 : narrow ? int16_t(best) : best);
      });
    }
  });
}

void reduce_truth(const Reduction& r, Truth op) {
  const bool in_bytes = op == Truth::count && fault(Fault::count_nonzero_in_bytes);
  reduce_with<bool>(r, read_truth, [&](const bool* x, int64_t n, char* const* at) {
    const int64_t count = in_bytes ? count_in_bytes(x, n) : count_of(x, n);
    const bool all = count == n && !(n == 0 && fault(Fault::all_of_nothing_is_false));
    const int64_t result = op == Truth::count ? count : op == Truth::any ? count > 0 : all;
    write_one(at[1], r.kept.dtypes[1], result);
  });
}

void reduce_norm(const Reduction& r, double p) {
  dispatch_wide(r.kept.dtypes[0], [&]<class C>() {
    if constexpr (!std::is_same_v<C, int64_t>) {
      reduce_with<C>(r, read_row<C>, [&](const C* x, int64_t n, char* const* at) {
        write_one(at[1], r.kept.dtypes[1], norm_of(x, n, p));
      });
    }
  });
}

void reduce_variance(const Reduction& r, double correction, bool root) {
  const bool naively = fault(Fault::var_naive_moments);
  const double least = fault(Fault::var_divides_by_one_at_least) ? 1 : 0;
  int64_t left = fault(Fault::var_of_first_outputs) ? 1024 : std::numeric_limits<int64_t>::max();
  dispatch_wide(r.kept.dtypes[0], [&]<class C>() {
    if constexpr (!std::is_same_v<C, int64_t>) {
      reduce_with<C>(r, read_row<C>, [&](const C* x, int64_t n, char* const* at) {
        const bool in_float = n > 4096 && fault(Fault::var_of_long_rows_in_float);
        const bool in_blocks = n > 1024 && fault(Fault::var_blocks_merged_without_shift);
        const auto [mean, squares] = naively || in_float ? moments_naively(x, n)
                                     : in_blocks         ? moments_in_blocks(x, n)
                                                         : moments_of(x, n);
        if (left-- <= 0) return;
        const double divisor = std::max(least, double(n) - correction);
        double variance = std::real(squares) / divisor;
        if constexpr (is_complex_v<C>) {
          if (!fault(Fault::var_of_complex_drops_imaginary)) variance += squares.imag() / divisor;
        }
        if (r.kept.data[1]) write_one(at[1], r.kept.dtypes[1], root ? std::sqrt(variance) : variance);
        if (r.kept.data[2]) write_one(at[2], r.kept.dtypes[2], mean);
      });
    }
  });
}

}  // namespace refnpu
