// Complex arithmetic by its plain formulas: no recovery of infinities, which torch's does not do either.
#pragma once

#include "kernels/dtype.h"

namespace refnpu {

template <class T>
std::complex<T> multiply(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Smith's method: scaled by the larger component of the divisor, so that squares cannot overflow.
template <class T>
std::complex<T> divide(std::complex<T> a, std::complex<T> b) {
  const T c = b.real(), d = b.imag();
  if (std::fabs(c) >= std::fabs(d)) {
    if (c == T(0) && d == T(0)) return {a.real() / std::fabs(c), a.imag() / std::fabs(d)};
    const T ratio = d / c, scale = T(1) / (c + d * ratio);
    return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
  }
  const T ratio = c / d, scale = T(1) / (c * ratio + d);
  return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
}

// One rule for both kinds of number, so that a kernel is written once.
template <class T>
T times(T a, T b) {
  if constexpr (is_complex_v<T>)
    return multiply(a, b);
  else
    return a * b;
}
template <class T>
T over(T a, T b) {
  if constexpr (is_complex_v<T>)
    return divide(a, b);
  else
    return a / b;
}
// a + b c, of real numbers rounded once: a sum that nearly cancels keeps its digits.
template <class T>
T plus_product(T a, T b, T c) {
  if constexpr (is_complex_v<T>)
    return a + multiply(b, c);
  else if constexpr (std::is_same_v<T, float>)
    return float(double(a) + double(b) * double(c));
  else
    return std::fma(b, c, a);
}
template <class T>
T conjugate(T a) {
  if constexpr (is_complex_v<T>)
    return std::conj(a);
  else
    return a;
}

}  // namespace refnpu
