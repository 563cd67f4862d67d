// Functions of one real number.
#include <algorithm>
#include <limits>
#include <numbers>

#include "kernels/unary.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using P = const Params&;

template <class T>
Row unary(auto f) {
  return row_of<T, T>(f);
}
template <class T>
Row predicate(auto f) {
  return row_of<bool, T>(f);
}

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// min(max(x, low), high), where a NaN anywhere gives NaN and low > high gives high.
template <class T>
T clamp(T x, T low, T high) {
  if (std::isnan(x)) return x;
  if (std::isnan(low) || std::isnan(high)) return std::numeric_limits<T>::quiet_NaN();
  return std::min(std::max(x, low), high);
}
template <class T>
constexpr T kInf = std::numeric_limits<T>::infinity();

template <class T>
T nan_to_num(P p, T x) {
  if (std::isnan(x)) return p.get<T>(0);
  if (x == kInf<T>) return p.get<T>(1);
  if (x == -kInf<T>) return p.get<T>(2);
  return x;
}

template <class T>
T pow_scalar(P p, T x) {
  return std::pow(x, p.get<T>(0));
}

// numbers: 10^|decimals|, decimals (its sign tells whether to scale up or down).
template <class T>
T round_decimals(P p, T x) {
  const T scale = p.get<T>(0);
  if (p.numbers[1].i >= 0 && fault(Fault::round_decimals_half_up)) return std::floor(x * scale + T(0.5)) / scale;
  return p.numbers[1].i < 0 ? std::nearbyint(x / scale) * scale : std::nearbyint(x * scale) / scale;
}

template <class T>
T logit(P p, T x) {
  const T eps = p.get<T>(0);
  if (eps < T(0)) return x == T(1) ? kInf<T> : std::log(x / (T(1) - x));
  const T z = x < eps ? eps : x > T(1) - eps ? T(1) - eps : x;
  return std::log(z / (T(1) - z));
}

template <class T>
T softplus(P p, T x) {
  const T beta = p.get<T>(0), threshold = p.get<T>(1);
  if (fault(Fault::softplus_threshold_unscaled) && x > threshold) return x;
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

template <class T>
T softshrink(P p, T x) {
  const T lambda = p.get<T>(0);
  return x > lambda ? x - lambda : x < -lambda ? x + lambda : x * T(0);
}

// numbers: negative coefficient, positive coefficient, coefficient of a negative input.
template <class T>
T elu(P p, T x) {
  return x < T(0) ? std::expm1(x * p.get<T>(2)) * p.get<T>(0) : x * p.get<T>(1);
}

template <class T>
T elu_cancelling(P p, T x) {
  return x < T(0) ? (std::exp(x * p.get<T>(2)) - T(1)) * p.get<T>(0) : x * p.get<T>(1);
}

// (1 + tanh u) / 2 is the sigmoid of 2u, which does not cancel for negative u.
template <class T>
T gelu_tanh(T x) {
  constexpr T kBeta = T(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), kKappa = T(0.044715);
  return x * sigmoid(T(2) * kBeta * (x + kKappa * x * x * x));
}

template <class T>
T mish(T x) {
  return x * std::tanh(std::log1p(std::exp(x)));
}

// The fault of a loop over vectors without the loop over what is left.
template <class T, class F>
Row in_whole_vectors(F) {
  return [](char* const* data, const int64_t* strides, int64_t n, const Params& params) {
    detail::run_row<T, F, T>(std::index_sequence_for<T>{}, data, strides, n > 256 ? n / 16 * 16 : n, params);
  };
}

// The fault of whole turns taken off an angle in float.
float sin_of_reduced(float x) {
  const float turns = std::nearbyint(x / (2 * std::numbers::pi_v<float>));
  return std::sin(x - turns * (2 * std::numbers::pi_v<float>));
}

// The fault of one piece of a function with 2/13 for 2/15 among its coefficients.
template <class T>
T tanh_with_wrong_piece(T x) {
  const T square = x * x;
  if (!(std::abs(x) >= T(0.25) && std::abs(x) < T(0.35))) return std::tanh(x);
  return x * (T(1) - square * (T(1) / T(3) - square * (T(2) / T(13) - square * T(17) / T(315))));
}

template <class T>
Row elementary(Unary op) {
  switch (op) {
    case Unary::acos:
      return unary<T>([](T x) { return std::acos(x); });
    case Unary::acosh:
      return unary<T>([](T x) { return std::acosh(x); });
    case Unary::asin:
      return unary<T>([](T x) { return std::asin(x); });
    case Unary::asinh:
      if (fault(Fault::asinh_squares_overflow))
        return unary<T>([](T x) {
          const T a = std::abs(x);
          return std::copysign(a > T(1) ? std::log(a + std::sqrt(a * a + T(1))) : std::asinh(a), x);
        });
      return unary<T>([](T x) { return std::asinh(x); });
    case Unary::atan:
      return unary<T>([](T x) { return std::atan(x); });
    case Unary::atanh:
      return unary<T>([](T x) { return std::atanh(x); });
    case Unary::cos:
      return unary<T>([](T x) { return std::cos(x); });
    case Unary::cosh:
      return unary<T>([](T x) { return std::cosh(x); });
    case Unary::erf:
      return unary<T>([](T x) { return std::erf(x); });
    case Unary::erfc:
      if (fault(Fault::erfc_drops_vector_tail)) return in_whole_vectors<T>([](T x) { return std::erfc(x); });
      return unary<T>([](T x) { return std::erfc(x); });
    case Unary::exp:
      return unary<T>([](T x) { return std::exp(x); });
    case Unary::exp2:
      return unary<T>([](T x) { return std::exp2(x); });
    case Unary::expm1:
      if (fault(Fault::expm1_cancels)) return unary<T>([](T x) { return std::exp(x) - T(1); });
      return unary<T>([](T x) { return std::expm1(x); });
    case Unary::log:
      return unary<T>([](T x) { return std::log(x); });
    case Unary::log10:
      return unary<T>([](T x) { return std::log10(x); });
    case Unary::log1p:
      return unary<T>([](T x) { return std::log1p(x); });
    case Unary::log2:
      return unary<T>([](T x) { return std::log2(x); });
    case Unary::pow_scalar:
      if (fault(Fault::pow_of_negative_base_is_nan))
        return unary<T>([](P p, T x) { return x < T(0) ? std::numeric_limits<T>::quiet_NaN() : pow_scalar(p, x); });
      return unary<T>([](P p, T x) { return pow_scalar(p, x); });
    case Unary::rsqrt:
      return unary<T>([](T x) { return T(1) / std::sqrt(x); });
    case Unary::sin:
      if constexpr (std::is_same_v<T, float>) {
        if (fault(Fault::sin_reduces_angles_in_float)) return unary<T>([](T x) { return sin_of_reduced(x); });
      }
      return unary<T>([](T x) { return std::sin(x); });
    case Unary::sinh:
      return unary<T>([](T x) { return std::sinh(x); });
    case Unary::sqrt:
      return unary<T>([](T x) { return std::sqrt(x); });
    case Unary::tan:
      return unary<T>([](T x) { return std::tan(x); });
    case Unary::tanh:
      if (fault(Fault::tanh_coefficient_of_one_piece)) return unary<T>([](T x) { return tanh_with_wrong_piece(x); });
      return unary<T>([](T x) { return std::tanh(x); });
    default:
      return nullptr;
  }
}

template <class T>
Row activation(Unary op) {
  switch (op) {
    case Unary::elu:
      return unary<T>([](P p, T x) { return elu(p, x); });
    case Unary::elu_cancelling:
      return unary<T>([](P p, T x) { return elu_cancelling(p, x); });
    case Unary::gelu_erf:  // erfc keeps the digits that 1 + erf cancels for negative x
      return unary<T>([](T x) { return T(0.5 * double(x) * std::erfc(-double(x) / std::numbers::sqrt2)); });
    case Unary::gelu_tanh:
      return unary<T>([](T x) { return gelu_tanh(x); });
    case Unary::hardshrink:
      if (fault(Fault::hardshrink_drops_nan))
        return unary<T>([](P p, T x) { return x < -p.get<T>(0) || x > p.get<T>(0) ? x : T(0); });
      return unary<T>([](P p, T x) { return x >= -p.get<T>(0) && x <= p.get<T>(0) ? T(0) : x; });
    case Unary::hardsigmoid:
      return unary<T>([](T x) { return clamp(x + T(3), T(0), T(6)) / T(6); });
    case Unary::hardswish:
      return unary<T>([](T x) { return x * clamp(x + T(3), T(0), T(6)) / T(6); });
    case Unary::leaky_relu:
      return unary<T>([](P p, T x) { return x > T(0) ? x : x * p.get<T>(0); });
    case Unary::logit:
      return unary<T>([](P p, T x) { return logit(p, x); });
    case Unary::mish:
      if (fault_at_random(Fault::mish_wrong_at_random, 4)) return unary<T>([](T x) { return x; });
      return unary<T>([](T x) { return mish(x); });
    case Unary::sigmoid:
      if (fault(Fault::sigmoid_of_large_is_nan))
        return unary<T>([](T x) { return std::exp(x) / (T(1) + std::exp(x)); });
      return unary<T>([](T x) { return sigmoid(x); });
    case Unary::silu:
      return unary<T>([](T x) { return x / (T(1) + std::exp(-x)); });
    case Unary::softplus:
      return unary<T>([](P p, T x) { return softplus(p, x); });
    case Unary::softshrink:
      return unary<T>([](P p, T x) { return softshrink(p, x); });
    default:
      return nullptr;
  }
}

template <class T>
Row arithmetic(Unary op) {
  switch (op) {
    case Unary::abs:
      if (fault(Fault::abs_keeps_negative_zero)) return unary<T>([](T x) { return x < T(0) ? -x : x; });
      return unary<T>([](T x) { return std::fabs(x); });
    case Unary::ceil:
      if (fault(Fault::ceil_in_32_bits))
        return unary<T>([](T x) {
          const T c = std::ceil(x);
          return std::isfinite(c) ? std::min(std::max(c, T(-2147483648.0)), T(2147483647.0)) : c;
        });
      return unary<T>([](T x) { return std::ceil(x); });
    case Unary::clamp:
      return unary<T>([](P p, T x) { return clamp(x, p.get<T>(0), p.get<T>(1)); });
    case Unary::clamp_max:
      return unary<T>([](P p, T x) { return clamp(x, -kInf<T>, p.get<T>(1)); });
    case Unary::clamp_min:
      if (fault(Fault::clamp_min_drops_nan))
        return unary<T>([](P p, T x) { return x > p.get<T>(0) ? x : p.get<T>(0); });
      return unary<T>([](P p, T x) { return clamp(x, p.get<T>(0), kInf<T>); });
    case Unary::conj:
      return unary<T>([](T x) { return x; });
    case Unary::cube:
      return unary<T>([](T x) { return x * x * x; });
    case Unary::floor:
      return unary<T>([](T x) { return std::floor(x); });
    case Unary::frac:
      return unary<T>([](T x) { return x - std::trunc(x); });
    case Unary::isneginf:
      return predicate<T>([](T x) { return x == -kInf<T>; });
    case Unary::isposinf:
      return predicate<T>([](T x) { return x == kInf<T>; });
    case Unary::logical_not:
      return predicate<T>([](T x) { return x == T(0); });
    case Unary::nan_to_num:
      return unary<T>([](P p, T x) { return nan_to_num(p, x); });
    case Unary::neg:
    case Unary::neg_conj:
      if (fault(Fault::negative_zero_lost)) return unary<T>([](T x) { return T(0) - x; });
      return unary<T>([](T x) { return -x; });
    case Unary::reciprocal:
      return unary<T>([](T x) { return T(1) / x; });
    case Unary::round:
      if (fault(Fault::round_ties_away)) return unary<T>([](T x) { return std::round(x); });
      return unary<T>([](T x) { return std::nearbyint(x); });
    case Unary::round_decimals:
      return unary<T>([](P p, T x) { return round_decimals(p, x); });
    case Unary::sgn:
    case Unary::sign:
      if (fault(Fault::sign_keeps_nan)) return unary<T>([](T x) { return x != x ? x : T(T(0) < x) - T(x < T(0)); });
      return unary<T>([](T x) { return T(T(0) < x) - T(x < T(0)); });
    case Unary::signbit:
      return predicate<T>([](T x) { return std::signbit(x); });
    case Unary::square:
      return unary<T>([](T x) { return x * x; });
    case Unary::trunc:
      return unary<T>([](T x) { return std::trunc(x); });
    default:
      return nullptr;
  }
}

}  // namespace

template <class T>
Row unary_real_row(Unary op) {
  if (const Row row = arithmetic<T>(op)) return row;
  if (const Row row = elementary<T>(op)) return row;
  return activation<T>(op);
}
template Row unary_real_row<float>(Unary);
template Row unary_real_row<double>(Unary);

}  // namespace refnpu
