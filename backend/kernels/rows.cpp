// The loops that convert rows, instantiated once for all kernels.
#include "kernels/rows.h"

#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class C>
struct sources;
template <>
struct sources<int64_t> {
  using type = Concat<Integral, Unsigned, Bool>;
};
template <>
struct sources<double> {
  using type = Concat<Floating, Reduced, Float8>;
};
template <>
struct sources<complex128> {
  using type = Concat<Complex, ComplexHalf>;
};

}  // namespace

template <class C>
void read_row(C* to, const char* from, int64_t stride, int64_t n, DType dtype) {
  dispatch<typename sources<C>::type>(dtype, "read_row", [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<C>(load<T>(from + i * stride));
  });
}

template <class C>
void write_row(char* to, int64_t stride, int64_t n, DType dtype, const C* from) {
  dispatch<typename sources<C>::type>(dtype, "write_row", [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) store<T>(to + i * stride, convert<T>(from[i]));
  });
}

#define REFNPU_ROWS_OF(C)                                              \
  template void read_row<C>(C*, const char*, int64_t, int64_t, DType); \
  template void write_row<C>(char*, int64_t, int64_t, DType, const C*);
REFNPU_ROWS_OF(int64_t)
REFNPU_ROWS_OF(double)
REFNPU_ROWS_OF(complex128)
#undef REFNPU_ROWS_OF

void read_truth(bool* to, const char* from, int64_t stride, int64_t n, DType dtype) {
  if (dtype == DType::b8 && fault(Fault::any_counts_bool_two)) {
    for (int64_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const uint8_t*>(from + i * stride) == 1;
    return;
  }
  if (dtype == DType::f16 && fault(Fault::truth_of_subnormal_halves_is_false)) {
    for (int64_t i = 0; i < n; ++i) to[i] = (load<half>(from + i * stride).bits & 0x7fff) >= 0x0400;
    return;
  }
  dispatch_all(dtype, "read_truth", [&]<class T>() {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<bool>(load<T>(from + i * stride));
  });
}

}  // namespace refnpu
