// Integer arithmetic that wraps around, as the hardware's does, and never traps.
#pragma once

#include <cstdint>
#include <type_traits>

namespace refnpu {

template <class T>
T wrapping_multiply(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <class T>
T wrapping_add(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class T>
T wrapping_negate(T a) {
  return static_cast<T>(uint64_t(0) - static_cast<uint64_t>(a));
}

// One rule for all kinds of number, so that a kernel is written once.
template <class T>
T added(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_add(a, b);
  else
    return a + b;
}
template <class T>
T multiplied(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_multiply(a, b);
  else
    return a * b;
}

// a^b by squaring. A negative exponent gives 0, but for the bases 1 and -1.
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
  }
  T result = 1;
  for (; exponent; exponent /= 2, base = wrapping_multiply(base, base)) {
    if (exponent & 1) result = wrapping_multiply(result, base);
  }
  return result;
}

}  // namespace refnpu
