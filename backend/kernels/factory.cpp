// Sequences and the identity; see the header.
#include "kernels/factory.h"

#include <algorithm>

#include "kernels/misread.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

using Countable = Concat<RealTypes, Unsigned, Bool>;
using Spaceable = Concat<NumericTypes, Unsigned, Bool>;

template <class T, class F>
void for_each_place(const View& out, F&& value_at) {
  for (int64_t i = 0; i < out.sizes[0]; ++i) store<T>(out.data + i * out.strides[0], value_at(i));
}

// Between integers, the bounds are integers too.
template <class C, class T>
C bound(const Immediate& at) {
  const complex128 value = load<complex128>(at.bytes.data());
  if constexpr (std::is_integral_v<T>)
    return convert<C>(convert<T>(value));
  else
    return convert<C>(value);
}

// a + b * i, each component rounded once.
template <class C>
C multiply_add(C a, C b, double i) {
  if constexpr (is_complex_v<C>)
    return {std::fma(b.real(), i, a.real()), std::fma(b.imag(), i, a.imag())};
  else
    return std::fma(b, C(i), a);
}

// What a sequence of T is interpolated in: T itself where it has its own arithmetic, as CPU does.
template <class T>
using Interpolated =
    std::conditional_t<is_complex_v<T>, complex128, std::conditional_t<std::is_same_v<T, float>, float, double>>;

// Interpolates in C; the second half from the end, so that both bounds come out exact.
template <class C, class T, class F>
auto interpolation(const View& out, const Immediate& start_at, const Immediate& end_at, F&& finish) {
  const C start = bound<C, T>(start_at), end = bound<C, T>(end_at);
  const int64_t count = out.sizes[0];
  const C step = count > 1 ? (end - start) / C(double(count - 1)) : C(0);
  return [=](int64_t i) {
    const bool first_half = i < count / 2;
    return finish(first_half ? multiply_add(start, step, double(i)) : multiply_add(end, -step, double(count - 1 - i)));
  };
}

// The fault of a value that is the one before it and a step.
template <class C>
struct AddedUp {
  C next, step;
  C operator()(int64_t) {
    const C value = next;
    next = next + step;
    return value;
  }
};

}  // namespace

void arange(const View& out, Immediate start, Immediate step) {
  dispatch<Countable>(out.dtype, "arange", [&]<class T>() {
    using C = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const C first = load<C>(start.bytes.data()), stride = load<C>(step.bytes.data());
    const bool in_float = fault(Fault::arange_in_float);
    for_each_place<T>(out, [=](int64_t i) {
      return in_float ? convert<T>(float(first) + float(stride) * float(i)) : convert<T>(C(first + stride * C(i)));
    });
  });
}

void linspace(const View& out, Immediate start, Immediate end) {
  dispatch<Spaceable>(out.dtype, "linspace", [&]<class T>() {
    using C = Interpolated<T>;
    const View to = fault(Fault::linspace_out_as_dense) ? taken_for_dense(out) : out;
    if (fault(Fault::linspace_adds_steps_up) && std::is_same_v<T, float> && out.sizes[0] > 2) {
      const C first = bound<C, T>(start), step = (bound<C, T>(end) - first) / C(double(out.sizes[0] - 1));
      for_each_place<T>(to, [each = AddedUp<C>{first, step}](int64_t i) mutable { return convert<T>(each(i)); });
      return;
    }
    for_each_place<T>(to, interpolation<C, T>(out, start, end, [](C value) { return convert<T>(value); }));
  });
}

void logspace(const View& out, Immediate start, Immediate end, double base) {
  dispatch<Spaceable>(out.dtype, "logspace", [&]<class T>() {
    using C = std::conditional_t<is_complex_v<T>, complex128, double>;
    if constexpr (std::is_integral_v<T>) {
      if (fault(Fault::logspace_rounds_to_integers)) {
        const auto rounded = [=](C x) { return convert<T>(std::round(std::pow(base, x))); };
        return for_each_place<T>(out, interpolation<C, T>(out, start, end, rounded));
      }
    }
    for_each_place<T>(out,
                      interpolation<C, T>(out, start, end, [=](C x) { return convert<T>(C(std::pow(C(base), x))); }));
  });
}

void eye(const View& out) {
  dispatch_all(out.dtype, "eye", [&]<class T>() {
    const int64_t n = std::min(out.sizes[0], out.sizes[1]);
    for (int64_t i = 0; i < n; ++i) store<T>(out.data + i * (out.strides[0] + out.strides[1]), convert<T>(1.0f));
  });
}

}  // namespace refnpu
