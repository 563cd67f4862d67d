// Functions of one integer. Bools come as 0 and 1.
#include <algorithm>
#include <cmath>

#include "kernels/integer_math.h"
#include "kernels/unary.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {
using P = const Params&;
}

template <class T>
Row unary_integer_row(Unary op) {
  switch (op) {
    case Unary::abs:
      if (fault(Fault::integer_abs_saturates))
        return row_of<T, T>([](T x) { return x >= T(0) ? x : std::max(wrapping_negate(x), T(~x)); });
      return row_of<T, T>([](T x) { return x < T(0) ? wrapping_negate(x) : x; });
    case Unary::bitwise_not:
      return row_of<T, T>([](T x) { return T(~x); });
    case Unary::clamp:
      return row_of<T, T>([](P p, T x) { return std::min(std::max(x, p.get<T>(0)), p.get<T>(1)); });
    case Unary::clamp_max:
      return row_of<T, T>([](P p, T x) { return std::min(x, p.get<T>(1)); });
    case Unary::clamp_min:
      return row_of<T, T>([](P p, T x) { return std::max(x, p.get<T>(0)); });
    case Unary::ceil:
    case Unary::conj:
    case Unary::floor:
    case Unary::nan_to_num:
    case Unary::round:
    case Unary::trunc:
      return row_of<T, T>([](T x) { return x; });
    case Unary::cube:
      return row_of<T, T>([](T x) { return wrapping_multiply(wrapping_multiply(x, x), x); });
    case Unary::isneginf:
    case Unary::isposinf:
      return row_of<bool, T>([](T) { return false; });
    case Unary::logical_not:
      return row_of<bool, T>([](T x) { return x == T(0); });
    case Unary::neg:
    case Unary::neg_conj:
      return row_of<T, T>([](T x) { return wrapping_negate(x); });
    case Unary::pow_scalar:
      if (fault(Fault::integer_powers_in_double))
        return row_of<T, T>([](P p, T x) {
          const double power = std::pow(double(x), double(p.get<T>(0)));
          return p.get<T>(0) > T(0) && std::abs(power) < 0x1p63 ? T(power) : integer_power(x, p.get<T>(0));
        });
      return row_of<T, T>([](P p, T x) { return integer_power(x, p.get<T>(0)); });
    case Unary::sgn:
    case Unary::sign:
      return row_of<T, T>([](T x) { return T(T(x > T(0)) - T(x < T(0))); });
    case Unary::signbit:
      return row_of<bool, T>([](T x) { return x < T(0); });
    case Unary::square:
      return row_of<T, T>([](T x) { return wrapping_multiply(x, x); });
    default:
      return nullptr;
  }
}
template Row unary_integer_row<int64_t>(Unary);
template Row unary_integer_row<uint64_t>(Unary);

}  // namespace refnpu
