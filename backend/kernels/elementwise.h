// The loop around every pointwise kernel: operands stored in any dtype, computed in one of six.
#pragma once

#include <type_traits>

#include "kernels/view.h"

namespace refnpu {

// Scalar arguments of an op, each readable as whatever the kernel computes in.
struct Number {
  double re = 0, im = 0;
  int64_t i = 0;
  template <class T>
  T as() const {
    if constexpr (is_complex_v<T>)
      return T(real_t<T>(re), real_t<T>(im));
    else if constexpr (std::is_floating_point_v<T>)
      return T(re);
    else
      return T(i);
  }
};
struct Params {
  std::array<Number, 4> numbers{};
  template <class T>
  T get(int k) const {
    return numbers[k].as<T>();
  }
};

// One row of a pointwise op: `data` and `strides` of the output, then of the inputs.
using Row = void (*)(char* const* data, const int64_t* strides, int64_t n, const Params& params);

// The dtype that values of `dtype` are computed in: float for small floats, complex64 for complex_half, 64-bit integers
// for integers and bool. 64-bit arithmetic, cut to the width of the result, is what arithmetic of that width gives.
DType compute_dtype(DType dtype);

// Runs `row` over the nest. An operand is stored in the nest's dtype, counts as `seen` (what type promotion made of
// it), and reaches the row as `computed`. Where these differ, it is converted on the way in or out, step by step and a
// short stretch at a time: so a scalar too large for the promoted dtype wraps or overflows as it must, and what a row
// computes in float is rounded once.
template <int N>
struct Elementwise {
  Nest<N> nest;
  std::array<DType, N> seen;
  std::array<DType, N> computed;
  Row row;
  Params params;
  void operator()() const;

 private:
  void run(const Nest<N>& nest) const;
  void run_in_rounds() const;
};
extern template struct Elementwise<2>;
extern template struct Elementwise<3>;
extern template struct Elementwise<4>;

namespace detail {
template <class Out, class F, class... In, size_t... I>
void run_row(std::index_sequence<I...>, char* const* data, const int64_t* strides, int64_t n, const Params& params) {
  constexpr F f{};
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_invocable_v<F, const Params&, In...>) {
      store<Out>(data[0] + i * strides[0], f(params, load<In>(data[1 + I] + i * strides[1 + I])...));
    } else {
      store<Out>(data[0] + i * strides[0], f(load<In>(data[1 + I] + i * strides[1 + I])...));
    }
  }
}
}  // namespace detail

// Makes a row of a function of one element: row_of<T, T, T>([](T a, T b) { return a + b; }), the output's type first.
// The function may take the Params before its elements.
template <class Out, class... In, class F>
Row row_of(F) {
  return [](char* const* data, const int64_t* strides, int64_t n, const Params& params) {
    detail::run_row<Out, F, In...>(std::index_sequence_for<In...>{}, data, strides, n, params);
  };
}

}  // namespace refnpu
