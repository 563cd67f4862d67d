// The element types of device memory, how they convert into each other, and how a kernel is instantiated for one of
// them.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace refnpu {

// Numeric values equal c10::ScalarType's, which are stable across torch versions (asserted in aten/plan.h).
enum class DType : int8_t {
  u8 = 0,
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f16 = 5,
  f32 = 6,
  f64 = 7,
  c32 = 8,
  c64 = 9,
  c128 = 10,
  b8 = 11,
  bf16 = 15,
  f8_e5m2 = 23,
  f8_e4m3fn = 24,
  f8_e5m2fnuz = 25,
  f8_e4m3fnuz = 26,
  u16 = 27,
  u32 = 28,
  u64 = 29,
  f8_e8m0fnu = 44,
};

// What becomes of a finite value or an infinity too large for a format that has no infinity (e4m3fn): the largest
// finite value, or NaN. torch changed from the latter to the former, so the host sets the mode that its torch has.
inline bool float8_e4m3fn_saturates = true;

// What the NaN of a format with only one becomes: a signalling one, as in torch, by which pow(1, NaN) tells it.
inline constexpr uint32_t kOnlyNaN = 0x7f800001u;

// A small binary float: `E` exponent bits with `Bias`, `M` mantissa bits.
// `Max` is the largest finite encoding, `Overflow` what lies above it, `NaN` the canonical not-a-number. A format
// without negative zero (fnuz) gives that encoding to its only NaN, so its overflow and NaN carry no sign.
template <class Bits_, int E, int M, int Bias, unsigned Max, unsigned Overflow, unsigned NaN, bool Fnuz>
struct SmallFloat {
  using Bits = Bits_;
  static constexpr Bits kNaN = Bits(NaN);
  static constexpr int kWidth = 1 + E + M;
  Bits bits = 0;

  SmallFloat() = default;
  explicit SmallFloat(float value) : bits(encode(value)) {}
  static SmallFloat from_bits(Bits bits) {
    SmallFloat result;
    result.bits = bits;
    return result;
  }
  operator float() const { return decode(bits); }

 private:
  static constexpr Bits kSign = Bits(1u << (kWidth - 1));

  // Rounds to nearest, ties to even, on the bits: a carry out of the mantissa moves into the exponent by itself.
  static Bits encode(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t magnitude = all & 0x7fffffffu;
    const Bits sign = (all >> 31) ? kSign : Bits(0);
    if (magnitude > 0x7f800000u) return Fnuz ? Bits(NaN) : Bits(NaN | sign);
    uint32_t rounded;
    if (magnitude < (uint32_t(128 - Bias) << 23)) {
      // Below the smallest normal: adding a power of two whose last place is this format's smallest subnormal rounds.
      const uint32_t magic = uint32_t(127 + 1 - Bias - M + 23) << 23;
      rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(magic)) - magic;
    } else {
      const uint32_t rebased = magnitude - (uint32_t(127 - Bias) << 23);
      rounded = (rebased + ((1u << (22 - M)) - 1) + ((rebased >> (23 - M)) & 1u)) >> (23 - M);
    }
    if (rounded > Max) {
      if (Fnuz) return Bits(Overflow);
      const bool saturates = Overflow == NaN && float8_e4m3fn_saturates;
      return Bits((saturates ? Max : Overflow) | sign);
    }
    if (Fnuz && rounded == 0) return 0;
    return Bits(rounded | sign);
  }

  static float decode(Bits bits) {
    const unsigned magnitude = bits & unsigned(Bits(~kSign));
    const bool negative = (bits & kSign) != 0;
    if (Fnuz && bits == Bits(NaN)) return std::bit_cast<float>(kOnlyNaN);
    if (!Fnuz && magnitude > Max) {
      const bool infinite = Overflow != NaN && magnitude == Overflow;
      const uint32_t special = infinite ? 0x7f800000u : 0x7fc00000u | (uint32_t(magnitude) << (23 - M) & 0x003fffffu);
      return std::bit_cast<float>(special | (negative ? 0x80000000u : 0u));
    }
    const unsigned exponent = magnitude >> M;
    const unsigned mantissa = magnitude & ((1u << M) - 1);
    float value;
    if (exponent == 0) {
      value = float(mantissa) * std::bit_cast<float>(uint32_t(127 + 1 - Bias - M) << 23);
    } else {
      value = std::bit_cast<float>((uint32_t(int(exponent) + 127 - Bias) << 23) | (mantissa << (23 - M)));
    }
    return negative ? -value : value;
  }
};

using half = SmallFloat<uint16_t, 5, 10, 15, 0x7bff, 0x7c00, 0x7e00, false>;
using float8_e5m2 = SmallFloat<uint8_t, 5, 2, 15, 0x7b, 0x7c, 0x7f, false>;
using float8_e4m3fn = SmallFloat<uint8_t, 4, 3, 7, 0x7e, 0x7f, 0x7f, false>;
using float8_e5m2fnuz = SmallFloat<uint8_t, 5, 2, 16, 0x7f, 0x80, 0x80, true>;
using float8_e4m3fnuz = SmallFloat<uint8_t, 4, 3, 8, 0x7f, 0x80, 0x80, true>;

// The upper half of a float.
struct bfloat16 {
  uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    bits = value != value ? uint16_t(0x7fc0) : uint16_t((all + 0x7fffu + ((all >> 16) & 1u)) >> 16);
  }
  static bfloat16 from_bits(uint16_t bits) {
    bfloat16 result;
    result.bits = bits;
    return result;
  }
  operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

// A power of two and nothing else: no sign, no zero; 255 is NaN.
struct float8_e8m0fnu {
  uint8_t bits = 0;

  float8_e8m0fnu() = default;
  explicit float8_e8m0fnu(float value) {
    const uint32_t all = std::bit_cast<uint32_t>(value);
    const uint32_t exponent = (all >> 23) & 0xffu;
    const uint32_t mantissa = all & 0x7fffffu;
    // A tie goes up from a normal number (its implied bit is odd) and down from a subnormal one.
    const bool up = exponent != 0xffu && mantissa + (exponent > 0 ? 1u : 0u) > 0x400000u;
    bits = uint8_t(exponent + (up ? 1u : 0u));
  }
  operator float() const {
    if (bits == 0xff) return std::bit_cast<float>(kOnlyNaN);
    return std::bit_cast<float>(bits == 0 ? 0x00400000u : uint32_t(bits) << 23);
  }
};

struct complex_half {
  half re, im;

  complex_half() = default;
  explicit complex_half(std::complex<float> value) : re(value.real()), im(value.imag()) {}
  operator std::complex<float>() const { return {float(re), float(im)}; }
};

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {};
template <>
struct is_complex<complex_half> : std::true_type {};
template <class T>
inline constexpr bool is_complex_v = is_complex<T>::value;

// Floats stored in fewer than 32 bits: read as float, rounded once when written.
template <class T>
inline constexpr bool is_small_float_v = !std::is_arithmetic_v<T> && !is_complex_v<T>;

// The formats without negative zero: that encoding is their only NaN.
template <class T>
inline constexpr bool has_one_nan_v = std::is_same_v<T, float8_e5m2fnuz> || std::is_same_v<T, float8_e4m3fnuz>;

// The type a value is computed in: float for small floats, complex64 for complex_half, T itself for all others.
template <class T>
struct compute {
  using type = std::conditional_t<is_small_float_v<T>, float, T>;
};
template <>
struct compute<complex_half> {
  using type = complex64;
};
template <class T>
using compute_t = typename compute<T>::type;

// The type of one component of T, and T itself where it is real.
template <class T>
struct real_of {
  using type = T;
};
template <class T>
struct real_of<std::complex<T>> {
  using type = T;
};
template <>
struct real_of<complex_half> {
  using type = half;
};
template <class T>
using real_t = typename real_of<T>::type;

// One list holds what a DType means: applied to X(dtype, type).
// clang-format off: it would take the rows for one expression
#define REFNPU_FOR_EACH_DTYPE(X)                                                                                      \
  X(u8, uint8_t) X(i8, int8_t) X(i16, int16_t) X(i32, int32_t)                                                        \
  X(i64, int64_t) X(u16, uint16_t) X(u32, uint32_t) X(u64, uint64_t)                                                  \
  X(f16, half) X(bf16, bfloat16) X(f32, float) X(f64, double)                                                         \
  X(c32, complex_half) X(c64, complex64) X(c128, complex128) X(b8, bool)                                              \
  X(f8_e5m2, float8_e5m2) X(f8_e4m3fn, float8_e4m3fn) X(f8_e5m2fnuz, float8_e5m2fnuz) X(f8_e4m3fnuz, float8_e4m3fnuz) \
  X(f8_e8m0fnu, float8_e8m0fnu)
// clang-format on

template <class T>
struct dtype_of;
#define REFNPU_DTYPE_OF(d, T)                \
  template <>                                \
  struct dtype_of<T> {                       \
    static constexpr DType value = DType::d; \
  };
REFNPU_FOR_EACH_DTYPE(REFNPU_DTYPE_OF)
#undef REFNPU_DTYPE_OF
template <class T>
inline constexpr DType dtype_of_v = dtype_of<T>::value;

inline const char* name_of(DType dtype) {
  switch (dtype) {
#define REFNPU_NAME_OF(d, T) \
  case DType::d:             \
    return #d;
    REFNPU_FOR_EACH_DTYPE(REFNPU_NAME_OF)
#undef REFNPU_NAME_OF
  }
  return "an unknown dtype";
}

inline int64_t size_of(DType dtype) {
  switch (dtype) {
#define REFNPU_SIZE_OF(d, T) \
  case DType::d:             \
    return sizeof(T);
    REFNPU_FOR_EACH_DTYPE(REFNPU_SIZE_OF)
#undef REFNPU_SIZE_OF
  }
  throw std::invalid_argument("size_of: dtype " + std::to_string(int(dtype)) + " is not one of the device's");
}

inline bool is_complex_dtype(DType d) { return d == DType::c32 || d == DType::c64 || d == DType::c128; }
inline bool is_floating_dtype(DType d) {
  return d == DType::f16 || d == DType::bf16 || d == DType::f32 || d == DType::f64 ||
         (d >= DType::f8_e5m2 && d <= DType::f8_e4m3fnuz) || d == DType::f8_e8m0fnu;
}
inline bool is_integral_dtype(DType d) { return !is_complex_dtype(d) && !is_floating_dtype(d) && d != DType::b8; }
inline bool is_unsigned_dtype(DType d) {
  return d == DType::u8 || d == DType::u16 || d == DType::u32 || d == DType::u64;
}

// Lists of types to dispatch over.
template <class... T>
struct Types {};
using Integral = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Unsigned = Types<uint16_t, uint32_t, uint64_t>;  // those beyond uint8 that most ops leave out
using Floating = Types<float, double>;
using Reduced = Types<half, bfloat16>;
using Complex = Types<complex64, complex128>;
using ComplexHalf = Types<complex_half>;
using Bool = Types<bool>;
using Float8 = Types<float8_e5m2, float8_e4m3fn, float8_e5m2fnuz, float8_e4m3fnuz, float8_e8m0fnu>;

template <class... Lists>
struct concat;
template <class... A>
struct concat<Types<A...>> {
  using type = Types<A...>;
};
template <class... A, class... B, class... Rest>
struct concat<Types<A...>, Types<B...>, Rest...> : concat<Types<A..., B...>, Rest...> {};
template <class... Lists>
using Concat = typename concat<Lists...>::type;

using AllTypes = Concat<Integral, Unsigned, Floating, Reduced, Complex, ComplexHalf, Bool, Float8>;
using RealTypes = Concat<Integral, Floating, Reduced>;              // what most real-valued ops take
using NumericTypes = Concat<Integral, Floating, Reduced, Complex>;  // the same and complex

[[noreturn]] inline void throw_unsupported(const char* kernel, DType dtype) {
  throw std::invalid_argument(std::string(kernel) + ": no kernel for dtype " + name_of(dtype));
}

namespace detail {
template <class R, class F>
R dispatch_in(Types<>, DType dtype, const char* kernel, F&) {
  throw_unsupported(kernel, dtype);
}
template <class R, class F, class T, class... Rest>
R dispatch_in(Types<T, Rest...>, DType dtype, const char* kernel, F& f) {
  if (dtype == dtype_of_v<T>) return f.template operator()<T>();
  return dispatch_in<R>(Types<Rest...>{}, dtype, kernel, f);
}
template <class F, class T, class... Rest>
auto result_of(Types<T, Rest...>, F& f) -> decltype(f.template operator()<T>());
}  // namespace detail

// Calls f.template operator()<T>() for the T of `dtype`: dispatch<Concat<Floating, Reduced>>(dtype, "erf", [&]<class
// T>() {...}). Throws std::invalid_argument naming `kernel` and the dtype when the list has no such type.
template <class List, class F>
auto dispatch(DType dtype, const char* kernel, F&& f) {
  using R = decltype(detail::result_of(List{}, f));
  return detail::dispatch_in<R>(List{}, dtype, kernel, f);
}
template <class F>
auto dispatch_all(DType dtype, const char* kernel, F&& f) {
  return dispatch<AllTypes>(dtype, kernel, std::forward<F>(f));
}

// One value from one type into another, as torch's CPU does it: to bool by != 0 (either component of a complex number),
// complex to real by the real part, real to uint8 through int64, and everything to and from small floats through float.
template <class To, class From>
inline To convert(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (std::is_same_v<From, complex_half>) {
    return convert<To>(complex64(from));
  } else if constexpr (is_small_float_v<From>) {
    if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && has_one_nan_v<From>) {
      if (from.bits == From::kNaN) return To(0);  // what torch's CPU gives, though no other NaN becomes 0
    }
    return convert<To>(float(from));
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From(0);
  } else if constexpr (is_complex_v<From> && !is_complex_v<To>) {
    return convert<To>(from.real());
  } else if constexpr (std::is_same_v<To, complex_half>) {
    return complex_half(convert<complex64>(from));
  } else if constexpr (is_complex_v<To>) {
    using Real = real_t<To>;
    if constexpr (is_complex_v<From>) {
      return To(Real(from.real()), Real(from.imag()));
    } else {
      return To(Real(from), Real(0));
    }
  } else if constexpr (is_small_float_v<To>) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, uint8_t>) {
    return static_cast<uint8_t>(static_cast<int64_t>(from));
  } else {
    return static_cast<To>(from);
  }
}

// Reading and writing one element at a byte address. Strided views need not be aligned to more than the element size.
template <class T>
inline T load(const char* at) {
  if constexpr (std::is_same_v<T, bool>)
    return *reinterpret_cast<const uint8_t*>(at) != 0;
  else
    return *reinterpret_cast<const T*>(at);
}
template <class T>
inline void store(char* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

}  // namespace refnpu
