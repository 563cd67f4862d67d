// Functions of one complex number.
#include <limits>
#include <numbers>

#include "kernels/complex_math.h"
#include "kernels/unary.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using P = const Params&;

template <class Z>
Row unary(auto f) {
  return row_of<Z, Z>(f);
}

template <class T>
std::complex<T> log1p(std::complex<T> z) {
  const T x = z.real(), y = z.imag(), angle = std::atan2(y, x + T(1));
  if (std::abs(z) >= T(0.5)) return {std::log(std::hypot(x + T(1), y)), angle};
  const T r = x * (T(2) + x) + y * y;  // |1 + z|^2 - 1, without cancellation
  return {r == T(0) ? x : T(0.5) * std::log1p(r), angle};
}

template <class T>
std::complex<T> expm1(std::complex<T> z) {
  const T half_sine = std::sin(z.imag() / T(2));
  return {std::expm1(z.real()) * std::cos(z.imag()) - T(2) * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

template <class Z>
Z sgn(Z z) {
  const auto size = std::abs(z);
  return size == 0 ? Z(0) : Z(z.real() / size, z.imag() / size);
}

template <class T>
T nan_to_num_part(P p, T x) {
  if (std::isnan(x)) return p.get<T>(0);
  if (std::isinf(x)) return p.get<T>(x > T(0) ? 1 : 2);
  return x;
}

template <class Z>
Row elementary(Unary op) {
  using T = real_t<Z>;
  switch (op) {
    case Unary::acos:
      return unary<Z>([](Z z) { return std::acos(z); });
    case Unary::acosh:
      return unary<Z>([](Z z) { return std::acosh(z); });
    case Unary::asin:
      return unary<Z>([](Z z) { return std::asin(z); });
    case Unary::asinh:
      return unary<Z>([](Z z) { return std::asinh(z); });
    case Unary::atan:
      return unary<Z>([](Z z) { return std::atan(z); });
    case Unary::atanh:
      return unary<Z>([](Z z) { return std::atanh(z); });
    case Unary::cos:
      return unary<Z>([](Z z) { return std::cos(z); });
    case Unary::cosh:
      return unary<Z>([](Z z) { return std::cosh(z); });
    case Unary::exp:
      return unary<Z>([](Z z) { return std::exp(z); });
    case Unary::exp2:
      return unary<Z>([](Z z) { return std::exp(z * T(std::numbers::ln2)); });
    case Unary::expm1:
      return unary<Z>([](Z z) { return expm1(z); });
    case Unary::log:
      if (fault(Fault::log_of_complex_ignores_negative_zero))
        return unary<Z>([](Z z) { return std::log(Z(z.real(), z.imag() + T(0))); });
      return unary<Z>([](Z z) { return std::log(z); });
    case Unary::log10:
      return unary<Z>([](Z z) { return std::log(z) / T(std::numbers::ln10); });
    case Unary::log1p:
      return unary<Z>([](Z z) { return log1p(z); });
    case Unary::log2:
      return unary<Z>([](Z z) { return std::log(z) / T(std::numbers::ln2); });
    case Unary::pow_scalar:
      if (fault(Fault::complex_pow_of_zero_is_nan))
        return unary<Z>([](P p, Z z) {
          constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
          return z == Z(0) ? Z(kNaN, kNaN) : std::pow(z, p.get<Z>(0));
        });
      return unary<Z>([](P p, Z z) { return std::pow(z, p.get<Z>(0)); });
    case Unary::rsqrt:
      return unary<Z>([](Z z) { return divide(Z(1), std::sqrt(z)); });
    case Unary::sin:
      return unary<Z>([](Z z) { return std::sin(z); });
    case Unary::sinh:
      return unary<Z>([](Z z) { return std::sinh(z); });
    case Unary::sqrt:
      return unary<Z>([](Z z) { return std::sqrt(z); });
    case Unary::tan:
      return unary<Z>([](Z z) { return std::tan(z); });
    case Unary::tanh:
      if (fault(Fault::complex_tanh_overflows))
        return unary<Z>([](Z z) {
          const Z twice = std::exp(z + z);
          return divide(twice - Z(1), twice + Z(1));
        });
      return unary<Z>([](Z z) { return std::tanh(z); });
    default:
      return nullptr;
  }
}

template <class Z>
Row arithmetic(Unary op) {
  using T = real_t<Z>;
  switch (op) {
    case Unary::abs:
      if (fault(Fault::complex_abs_overflows))
        return unary<Z>([](Z z) { return Z(std::sqrt(z.real() * z.real() + z.imag() * z.imag()), T(0)); });
      return unary<Z>([](Z z) { return Z(std::abs(z), T(0)); });
    case Unary::conj:
      return unary<Z>([](Z z) { return std::conj(z); });
    case Unary::cube:
      return unary<Z>([](Z z) { return multiply(multiply(z, z), z); });
    case Unary::logical_not:
      if (fault(Fault::complex_logical_not_by_real_part)) return row_of<bool, Z>([](Z z) { return z.real() == T(0); });
      return row_of<bool, Z>([](Z z) { return z == Z(0); });
    case Unary::nan_to_num:
      if (fault(Fault::nan_to_num_imaginary_becomes_zero))
        return unary<Z>([](P p, Z z) {
          return Z(nan_to_num_part(p, z.real()), std::isnan(z.imag()) ? T(0) : nan_to_num_part(p, z.imag()));
        });
      return unary<Z>([](P p, Z z) { return Z(nan_to_num_part(p, z.real()), nan_to_num_part(p, z.imag())); });
    case Unary::neg:
      return unary<Z>([](Z z) { return -z; });
    case Unary::neg_conj:
      return unary<Z>([](Z z) { return -std::conj(z); });
    case Unary::reciprocal:
      return unary<Z>([](Z z) { return divide(Z(1), z); });
    case Unary::sgn:
      if (fault(Fault::complex_sgn_of_zero_is_nan)) return unary<Z>([](Z z) { return z / std::abs(z); });
      return unary<Z>([](Z z) { return sgn(z); });
    case Unary::sigmoid:
      return unary<Z>([](Z z) { return divide(Z(1), Z(1) + std::exp(-z)); });
    case Unary::silu:
      return unary<Z>([](Z z) { return divide(z, Z(1) + std::exp(-z)); });
    case Unary::square:
      return unary<Z>([](Z z) { return multiply(z, z); });
    default:
      return nullptr;
  }
}

}  // namespace

template <class Z>
Row unary_complex_row(Unary op) {
  if (const Row row = arithmetic<Z>(op)) return row;
  return elementary<Z>(op);
}
template Row unary_complex_row<complex64>(Unary);
template Row unary_complex_row<complex128>(Unary);

}  // namespace refnpu
