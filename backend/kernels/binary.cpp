#include "kernels/binary.h"

#include <algorithm>
#include <limits>

#include "kernels/complex_math.h"
#include "kernels/integer_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using P = const Params&;

template <class T>
Row binary(auto f) {
  return row_of<T, T, T>(f);
}

// Python's floor division: the quotient of what fmod leaves, corrected where the signs differ.
template <class T>
T floor_divide(T a, T b) {
  if (b == T(0)) return a / b;
  const T mod = std::fmod(a, b);
  T quotient = (a - mod) / b;
  if (mod != T(0) && (b < T(0)) != (mod < T(0))) quotient -= T(1);
  if (quotient == T(0)) return std::copysign(T(0), a / b);
  const T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + T(1) : floored;
}

template <class T>
T remainder(T a, T b) {
  if (fault(Fault::remainder_by_quotient)) return a - b * std::floor(a / b);
  const T mod = std::fmod(a, b);
  return mod != T(0) && (b < T(0)) != (mod < T(0)) ? mod + b : mod;
}

template <class T>
Row real_row(Binary op) {
  switch (op) {
    case Binary::atan2:
      if (fault(Fault::atan2_of_zeros_is_zero))
        return binary<T>([](T a, T b) { return a == T(0) && b == T(0) ? T(0) : std::atan2(a, b); });
      return binary<T>([](T a, T b) { return std::atan2(a, b); });
    case Binary::copysign:
      if (fault(Fault::copysign_of_negative_zero))
        return binary<T>([](T a, T b) { return b < T(0) ? -std::abs(a) : std::abs(a); });
      return binary<T>([](T a, T b) { return std::copysign(a, b); });
    case Binary::div_floor:
      if (std::is_same_v<T, float> && fault(Fault::floor_division_of_rounded_quotient))
        return binary<T>([](T a, T b) { return std::floor(a / b); });
      return binary<T>([](T a, T b) { return floor_divide(a, b); });
    case Binary::div_trunc:
      return binary<T>([](T a, T b) { return std::trunc(a / b); });
    case Binary::fmax:
      if (fault(Fault::fmax_propagates_nan)) return real_row<T>(Binary::maximum);
      return binary<T>([](T a, T b) { return std::fmax(a, b); });
    case Binary::fmin:
      if (fault(Fault::fmax_propagates_nan)) return real_row<T>(Binary::minimum);
      return binary<T>([](T a, T b) { return std::fmin(a, b); });
    case Binary::fmod:
      return binary<T>([](T a, T b) { return std::fmod(a, b); });
    case Binary::hypot:
      if (fault(Fault::hypot_squares_overflow)) return binary<T>([](T a, T b) { return std::sqrt(a * a + b * b); });
      return binary<T>([](T a, T b) { return std::hypot(a, b); });
    case Binary::maximum:
      if (fault(Fault::nan_lost_in_maximum)) return binary<T>([](T a, T b) { return a > b ? a : b; });
      return binary<T>([](T a, T b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); });
    case Binary::minimum:
      return binary<T>([](T a, T b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b); });
    case Binary::remainder:
      return binary<T>([](T a, T b) { return remainder(a, b); });
    case Binary::threshold:
      return binary<T>([](P p, T a, T b) { return a <= p.get<T>(0) ? p.get<T>(1) : b; });
    default:
      return nullptr;
  }
}

// What a device does that has no subnormal numbers.
float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

// What real and complex numbers have in common.
template <class T>
Row field_row(Binary op) {
  switch (op) {
    case Binary::add:
      return binary<T>([](P p, T a, T b) { return plus_product(a, p.get<T>(0), b); });
    case Binary::sub:
      return binary<T>([](P p, T a, T b) { return plus_product(a, -p.get<T>(0), b); });
    case Binary::mul:
      if constexpr (std::is_same_v<T, float>) {
        if (fault(Fault::mul_flushes_subnormals)) return binary<T>([](T a, T b) { return flushed(a * b); });
      }
      return binary<T>([](T a, T b) { return times(a, b); });
    case Binary::div:
      if constexpr (is_complex_v<T>) {
        if (fault(Fault::complex_division_squares_overflow))
          return binary<T>([](T a, T b) { return times(a, std::conj(b)) / std::norm(b); });
      }
      return binary<T>([](T a, T b) { return over(a, b); });
    case Binary::pow:
      if (fault(Fault::pow_of_zero_to_negative_is_zero))
        return binary<T>([](T a, T b) { return a == T(0) && std::real(b) < 0 ? T(0) : T(std::pow(a, b)); });
      return binary<T>([](T a, T b) { return T(std::pow(a, b)); });
    default:
      return backward_row<T>(op);
  }
}

template <class T>
T truncated_quotient(T a, T b) {
  if (b == T(0)) return 0;  // reported by the host, which looks for zeros first
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) return wrapping_negate(a);
  }
  return a / b;
}

template <class T>
T truncated_remainder(T a, T b) {
  return wrapping_add(a, wrapping_negate(wrapping_multiply(truncated_quotient(a, b), b)));
}

template <class T>
T floored_quotient(T a, T b) {
  const T quotient = truncated_quotient(a, b);
  return (a < T(0)) != (b < T(0)) && truncated_remainder(a, b) != T(0) ? quotient - T(1) : quotient;
}

template <class T>
T floored_remainder(T a, T b) {
  const T mod = truncated_remainder(a, b);
  return mod != T(0) && (mod < T(0)) != (b < T(0)) ? wrapping_add(mod, b) : mod;
}

template <class T>
T left_shift(P p, T a, T b) {
  if (fault(Fault::shift_amount_wraps)) b &= T(p.numbers[0].i - 1);
  return b < T(0) || b >= T(p.numbers[0].i) ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b);
}

// Beyond the width nothing is left but the sign.
template <class T>
T right_shift(P p, T a, T b) {
  const bool of_bytes = p.numbers[0].i == 8 && p.numbers[1].i == 0;
  if (of_bytes && fault(Fault::right_shift_of_bytes_signed)) a = T(int8_t(a));
  const int64_t last = std::min<int64_t>(p.numbers[0].i - p.numbers[1].i, 63);
  return a >> (b < T(0) || b >= T(last) ? last : int64_t(b));
}

template <class T>
Row integer_row(Binary op) {
  switch (op) {
    case Binary::add:
      if (fault(Fault::addition_of_bytes_saturates))
        return binary<T>([](P p, T a, T b) {  // numbers: alpha, and the limits of a byte
          const T sum = wrapping_add(a, wrapping_multiply(p.get<T>(0), b));
          return p.get<T>(2) == T(0) ? sum : std::min(std::max(sum, p.get<T>(1)), p.get<T>(2));
        });
      return binary<T>([](P p, T a, T b) { return wrapping_add(a, wrapping_multiply(p.get<T>(0), b)); });
    case Binary::sub:
      return binary<T>(
          [](P p, T a, T b) { return wrapping_add(a, wrapping_negate(wrapping_multiply(p.get<T>(0), b))); });
    case Binary::mul:
      return binary<T>([](T a, T b) { return wrapping_multiply(a, b); });
    case Binary::div_floor:
      if (fault(Fault::integer_division_rounds_wrong)) return integer_row<T>(Binary::div_trunc);
      return binary<T>([](T a, T b) { return floored_quotient(a, b); });
    case Binary::div_trunc:
      if (fault(Fault::trunc_division_in_double))
        return binary<T>([](T a, T b) {
          const double quotient = std::trunc(double(a) / double(b));
          return std::abs(quotient) < 0x1p63 ? T(quotient) : truncated_quotient(a, b);
        });
      return binary<T>([](T a, T b) { return truncated_quotient(a, b); });
    case Binary::remainder:
      return binary<T>([](T a, T b) { return floored_remainder(a, b); });
    case Binary::fmod:
      return binary<T>([](T a, T b) { return truncated_remainder(a, b); });
    case Binary::pow:
      if (fault(Fault::integer_pow_of_minus_one))
        return binary<T>([](T a, T b) { return b < T(0) && a != T(1) ? T(0) : integer_power(a, b); });
      return binary<T>([](T a, T b) { return integer_power(a, b); });
    case Binary::maximum:
    case Binary::fmax:
      return binary<T>([](T a, T b) { return std::max(a, b); });
    case Binary::minimum:
    case Binary::fmin:
      if (fault(Fault::integer_minimum_through_float))
        return binary<T>([](T a, T b) { return float(b) < float(a) ? b : a; });
      return binary<T>([](T a, T b) { return std::min(a, b); });
    case Binary::bitwise_and:
      return binary<T>([](T a, T b) { return T(a & b); });
    case Binary::bitwise_or:
      return binary<T>([](T a, T b) { return T(a | b); });
    case Binary::bitwise_xor:
      return binary<T>([](T a, T b) { return T(a ^ b); });
    case Binary::left_shift:
      return binary<T>([](P p, T a, T b) { return left_shift(p, a, b); });
    case Binary::right_shift:
      return binary<T>([](P p, T a, T b) { return right_shift(p, a, b); });
    case Binary::threshold:
      return binary<T>([](P p, T a, T b) { return a <= p.get<T>(0) ? p.get<T>(1) : b; });
    default:
      return nullptr;
  }
}

}  // namespace

Row binary_row(Binary op, DType compute) {
  switch (compute) {
    case DType::f32: {
      const Row row = real_row<float>(op);
      return row ? row : field_row<float>(op);
    }
    case DType::f64: {
      const Row row = real_row<double>(op);
      return row ? row : field_row<double>(op);
    }
    case DType::c64:
      return field_row<complex64>(op);
    case DType::c128:
      return field_row<complex128>(op);
    case DType::i64:
      return integer_row<int64_t>(op);
    case DType::u64:
      return integer_row<uint64_t>(op);
    default:
      return nullptr;
  }
}

Row any_zero_row(DType compute) {
  const auto make = []<class T>() -> Row {
    return [](char* const* data, const int64_t* strides, int64_t n, const Params&) {
      for (int64_t i = 0; i < n; ++i) {
        if (load<T>(data[1] + i * strides[1]) == T(0)) store<bool>(data[0] + i * strides[0], true);
      }
    };
  };
  return compute == DType::u64 ? make.operator()<uint64_t>() : make.operator()<int64_t>();
}

}  // namespace refnpu
