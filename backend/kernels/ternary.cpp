#include "kernels/ternary.h"

#include <algorithm>

#include "kernels/complex_math.h"
#include "kernels/integer_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using P = const Params&;

template <class T>
Row ternary(auto f) {
  return row_of<T, T, T, T>(f);
}

// From the nearer end, so that weight 1 gives exactly `end`.
template <class T>
T lerp(T start, T end, T weight) {
  const T way = end - start;
  return std::abs(weight) < real_t<T>(0.5) ? plus_product(start, weight, way) : plus_product(end, -way, T(1) - weight);
}

template <class T>
T clamp(T x, T low, T high) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(x)) return x;
    if (std::isnan(low) && fault(Fault::clamp_ignores_bound_of_nan)) return std::min(x, high);
    if (std::isnan(low)) return low;
    if (std::isnan(high)) return high;
  }
  if (fault(Fault::clamp_crossed_bounds)) return std::max(std::min(x, high), low);
  return std::min(std::max(x, low), high);
}

template <class T>
Row field_row(Ternary op) {
  switch (op) {
    case Ternary::addcmul:
      if (fault(Fault::addcmul_zero_value_skips))
        return ternary<T>(
            [](P p, T a, T b, T c) { return p.get<T>(0) == T(0) ? a : plus_product(a, times(p.get<T>(0), b), c); });
      return ternary<T>([](P p, T a, T b, T c) { return plus_product(a, times(p.get<T>(0), b), c); });
    case Ternary::addcdiv:
      return ternary<T>([](P p, T a, T b, T c) { return a + over(times(p.get<T>(0), b), c); });
    case Ternary::lerp:
      if (fault(Fault::lerp_from_start)) return ternary<T>([](T a, T b, T c) { return plus_product(a, c, b - a); });
      return ternary<T>([](T a, T b, T c) { return lerp(a, b, c); });
    case Ternary::clamp:
      if constexpr (!is_complex_v<T>) return ternary<T>([](T a, T b, T c) { return clamp(a, b, c); });
  }
  return nullptr;
}

template <class T>
Row integer_row(Ternary op) {
  switch (op) {
    case Ternary::addcmul:
      if (fault(Fault::addcmul_value_through_float)) {
        return ternary<T>([](P p, T a, T b, T c) {
          const T value = T(float(p.get<T>(0)));
          return wrapping_add(a, wrapping_multiply(wrapping_multiply(value, b), c));
        });
      }
      return ternary<T>(
          [](P p, T a, T b, T c) { return wrapping_add(a, wrapping_multiply(wrapping_multiply(p.get<T>(0), b), c)); });
    case Ternary::clamp:
      return ternary<T>([](T a, T b, T c) { return clamp(a, b, c); });
    default:
      return nullptr;
  }
}

}  // namespace

Row ternary_row(Ternary op, DType compute) {
  switch (compute) {
    case DType::f32:
      return field_row<float>(op);
    case DType::f64:
      return field_row<double>(op);
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

Row lerp_scalar_row(DType compute) {
  const auto make = []<class T>() -> Row {
    return row_of<T, T, T>([](P p, T a, T b) { return lerp(a, b, p.get<T>(0)); });
  };
  switch (compute) {
    case DType::f32:
      return make.operator()<float>();
    case DType::f64:
      return make.operator()<double>();
    case DType::c64:
      return make.operator()<complex64>();
    case DType::c128:
      return make.operator()<complex128>();
    default:
      return nullptr;
  }
}

}  // namespace refnpu
