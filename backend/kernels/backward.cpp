// The gradients of activations: (gradient, input or result) -> gradient of the input.
#include <limits>
#include <numbers>

#include "kernels/binary.h"
#include "kernels/complex_math.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using P = const Params&;

template <class T>
Row backward(auto f) {
  return row_of<T, T, T>(f);
}

template <class T>
T gelu_erf_backward(T g, T x) {
  const T cdf = T(0.5) * std::erfc(-x / T(std::numbers::sqrt2));
  const T pdf = std::exp(T(-0.5) * x * x) * T(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return g * (cdf + x * pdf);
}

// The fault of a piece with the wrong sign.
template <class T>
T gelu_erf_backward_in_pieces(T g, T x) {
  return x > T(-4) && x < T(-3.5) ? -gelu_erf_backward(g, x) : gelu_erf_backward(g, x);
}

template <class T>
T gelu_tanh_backward(T g, T x) {
  constexpr T kBeta = T(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), kKappa = T(0.044715);
  const T twice = T(2) * kBeta * (x + kKappa * x * x * x);  // twice the argument of tanh
  const T sigmoid = T(1) / (T(1) + std::exp(-twice)), rest = T(1) / (T(1) + std::exp(twice));
  const T slope = T(2) * kBeta * (T(1) + T(3) * kKappa * x * x);
  return g * (sigmoid + x * sigmoid * rest * slope);
}

template <class T>
T mish_backward(T g, T x) {
  const T sigmoid = T(1) / (T(1) + std::exp(-x)), tanh = std::tanh(std::log1p(std::exp(x)));
  return g * (tanh + x * sigmoid * (T(1) - tanh * tanh));
}

template <class T>
T softplus_backward(P p, T g, T x) {
  const T beta = p.get<T>(0), z = std::exp(x * beta);
  return x * beta > p.get<T>(1) ? g : g * z / (z + T(1));
}

// numbers: eps, negative for "do not clamp".
template <class T>
T logit_backward(P p, T g, T x) {
  const T eps = p.get<T>(0), low = eps < T(0) ? T(0) : eps, high = T(1) - low;
  if (x < low || x > high) return eps < T(0) ? std::numeric_limits<T>::quiet_NaN() : T(0);
  if (eps < T(0) && (x == T(0) || x == T(1))) return g * std::numeric_limits<T>::infinity();
  return g / (x * (T(1) - x));
}

template <class T>
Row real_backward(Binary op) {
  switch (op) {
    case Binary::elu_backward:  // numbers: as for elu
      return backward<T>([](P p, T g, T x) {
        const T slope = p.get<T>(2) * p.get<T>(0);
        return x <= T(0) ? g * slope * std::exp(x * p.get<T>(2)) : g * p.get<T>(1);
      });
    case Binary::elu_backward_from_result:
      return backward<T>(
          [](P p, T g, T y) { return y <= T(0) ? g * p.get<T>(2) * (y + p.get<T>(0)) : g * p.get<T>(1); });
    case Binary::gelu_erf_backward:
      if (fault(Fault::gelu_gradient_sign_of_one_piece))
        return backward<T>([](T g, T x) { return gelu_erf_backward_in_pieces(g, x); });
      return backward<T>([](T g, T x) { return gelu_erf_backward(g, x); });
    case Binary::gelu_tanh_backward:
      return backward<T>([](T g, T x) { return gelu_tanh_backward(g, x); });
    case Binary::hardsigmoid_backward:
      return backward<T>([](T g, T x) { return x > T(-3) && x < T(3) ? g / T(6) : T(0); });
    case Binary::hardswish_backward:
      return backward<T>([](T g, T x) { return x <= T(-3) ? T(0) : x < T(3) ? g * (x / T(3) + T(0.5)) : g; });
    case Binary::hardtanh_backward:
      if (fault(Fault::hardtanh_gradient_at_bounds))
        return backward<T>([](P p, T g, T x) { return x < p.get<T>(0) || x > p.get<T>(1) ? T(0) : g; });
      return backward<T>([](P p, T g, T x) { return x <= p.get<T>(0) || x >= p.get<T>(1) ? T(0) : g; });
    case Binary::leaky_relu_backward:
      return backward<T>([](P p, T x, T g) { return x > T(0) ? g : g * p.get<T>(0); });  // input first, as torch has it
    case Binary::logit_backward:
      if (fault(Fault::logit_gradient_outside_eps_is_nan))
        return backward<T>([](P p, T g, T x) {
          const bool outside = x < p.get<T>(0) || x > T(1) - p.get<T>(0);
          return outside ? std::numeric_limits<T>::quiet_NaN() : logit_backward(p, g, x);
        });
      return backward<T>([](P p, T g, T x) { return logit_backward(p, g, x); });
    case Binary::mish_backward:
      return backward<T>([](T g, T x) { return mish_backward(g, x); });
    case Binary::shrink_backward:
      return backward<T>([](P p, T g, T x) { return x >= -p.get<T>(0) && x <= p.get<T>(0) ? T(0) : g; });
    case Binary::softplus_backward:
      return backward<T>([](P p, T g, T x) { return softplus_backward(p, g, x); });
    default:
      return nullptr;
  }
}

// g s (1 + x (1 - s)), s the sigmoid.
template <class T>
T silu_backward(T g, T x) {
  const T sigmoid = over(T(1), T(1) + std::exp(-x));
  return times(times(g, sigmoid), T(1) + times(x, T(1) - sigmoid));
}

}  // namespace

template <class T>
Row backward_row(Binary op) {
  switch (op) {
    case Binary::sigmoid_backward:
      if (is_complex_v<T> && fault(Fault::sigmoid_gradient_not_conjugated))
        return backward<T>([](T g, T y) { return times(g, times(T(1) - y, y)); });
      return backward<T>([](T g, T y) { return times(g, conjugate(times(T(1) - y, y))); });
    case Binary::tanh_backward:
      // (1 - y)(1 + y) keeps the digits that 1 - y² cancels near ±1
      return backward<T>([](T g, T y) { return times(g, conjugate(times(T(1) - y, T(1) + y))); });
    case Binary::silu_backward:
      return backward<T>([](T g, T x) { return silu_backward(g, x); });
    default:
      if constexpr (is_complex_v<T>)
        return nullptr;
      else
        return real_backward<T>(op);
  }
}
template Row backward_row<float>(Binary);
template Row backward_row<double>(Binary);
template Row backward_row<complex64>(Binary);
template Row backward_row<complex128>(Binary);

}  // namespace refnpu
