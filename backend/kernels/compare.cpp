#include "kernels/compare.h"

#include <cstring>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class T>
Row question(auto f) {
  return row_of<bool, T, T>(f);
}

// The fault of numbers that are compared as bits.
template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
Row order_row(Compare op) {
  switch (op) {
    case Compare::lt:
      if (fault(Fault::lt_of_integers_in_double))
        return question<T>([](T a, T b) { return static_cast<double>(a) < static_cast<double>(b); });
      return question<T>([](T a, T b) { return a < b; });
    case Compare::le:
      if (fault(Fault::le_negates_gt)) return question<T>([](T a, T b) { return !(a > b); });
      return question<T>([](T a, T b) { return a <= b; });
    case Compare::gt:
      return question<T>([](T a, T b) { return a > b; });
    case Compare::ge:
      return question<T>([](T a, T b) { return a >= b; });
    default:
      return nullptr;
  }
}

template <class T>
Row row(Compare op) {
  switch (op) {
    case Compare::eq:
      if (fault(Fault::bool_stored_as_two))
        return row_of<uint8_t, T, T>([](T a, T b) { return uint8_t(a == b ? 2 : 0); });
      if (fault(Fault::eq_compares_bits)) return question<T>([](T a, T b) { return same_bits(a, b); });
      return question<T>([](T a, T b) { return a == b; });
    case Compare::ne:
      if constexpr (!is_complex_v<T>) {
        if (fault(Fault::ne_is_less_or_greater)) return question<T>([](T a, T b) { return a < b || a > b; });
      }
      return question<T>([](T a, T b) { return a != b; });
    case Compare::logical_and:
      if constexpr (std::is_integral_v<T>) {
        if (fault(Fault::logical_and_by_bits)) return question<T>([](T a, T b) { return (a & b) != T(0); });
      }
      return question<T>([](T a, T b) { return a != T(0) && b != T(0); });
    case Compare::logical_or:
      return question<T>([](T a, T b) { return a != T(0) || b != T(0); });
    case Compare::logical_xor:
      return question<T>([](T a, T b) { return (a != T(0)) != (b != T(0)); });
    default:
      if constexpr (is_complex_v<T>)
        return nullptr;
      else
        return order_row<T>(op);
  }
}

}  // namespace

Row compare_row(Compare op, DType compute) {
  switch (compute) {
    case DType::f32:
      return row<float>(op);
    case DType::f64:
      return row<double>(op);
    case DType::c64:
      return row<complex64>(op);
    case DType::c128:
      return row<complex128>(op);
    case DType::i64:
      return row<int64_t>(op);
    case DType::u64:
      return row<uint64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace refnpu
