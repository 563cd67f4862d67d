#include "kernels/swiglu.h"

#include <cmath>

namespace refnpu {
namespace {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

}  // namespace

Row swiglu_row(DType compute) {
  const auto make = []<class T>() -> Row { return row_of<T, T, T>([](T x, T up) { return x * sigmoid(x) * up; }); };
  if (compute == DType::f32) return make.operator()<float>();
  return compute == DType::f64 ? make.operator()<double>() : nullptr;
}

Row swiglu_gate_backward_row(DType compute) {
  const auto make = []<class T>() -> Row {
    return row_of<T, T, T, T>([](T g, T x, T up) {
      const T s = sigmoid(x);
      return g * up * s * (T(1) + x * (T(1) - s));
    });
  };
  if (compute == DType::f32) return make.operator()<float>();
  return compute == DType::f64 ? make.operator()<double>() : nullptr;
}

Row swiglu_up_backward_row(DType compute) {
  const auto make = []<class T>() -> Row { return row_of<T, T, T>([](T g, T x) { return g * x * sigmoid(x); }); };
  if (compute == DType::f32) return make.operator()<float>();
  return compute == DType::f64 ? make.operator()<double>() : nullptr;
}

}  // namespace refnpu
