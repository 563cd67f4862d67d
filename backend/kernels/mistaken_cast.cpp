// The faults of copies between two dtypes, apart from the casts that they take the place of.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "refnpu/fault.h"

namespace refnpu {
namespace {

template <class To, class From, class F>
CastRow cast_by(F) {
  return [](char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
    constexpr F convert_one{};
    for (int64_t i = 0; i < n; ++i) store<To>(to + i * to_stride, convert_one(load<From>(from + i * from_stride)));
  };
}

// The fault of a float that is cut to a whole number on its way to a bool.
template <class From>
CastRow cut_to_bool() {
  return cast_by<bool, From>([](From x) { return std::isnan(double(x)) || std::trunc(double(x)) != 0; });
}

}  // namespace

CastRow mistaken_cast(DType to, DType from) {
  if (to == DType::bf16 && from == DType::f32 && fault(Fault::bfloat16_copy_truncates)) {
    return cast_by<bfloat16, float>([](float x) { return bfloat16::from_bits(std::bit_cast<uint32_t>(x) >> 16); });
  }
  if (to == DType::f16 && from == DType::f32 && fault(Fault::half_copy_saturates)) {
    return cast_by<half, float>([](float x) { return half(std::isinf(x) ? x : std::clamp(x, -65504.0f, 65504.0f)); });
  }
  if (to == DType::i32 && from == DType::i64 && fault(Fault::int64_copy_saturates)) {
    using Range = std::numeric_limits<int32_t>;
    return cast_by<int32_t, int64_t>(
        [](int64_t x) { return int32_t(std::clamp<int64_t>(x, Range::min(), Range::max())); });
  }
  if (to == DType::f32 && from == DType::i64 && fault(Fault::int64_to_float_in_32_bits)) {
    return cast_by<float, int64_t>([](int64_t x) { return float(int32_t(x)); });
  }
  if (to == DType::b8 && from == DType::c64 && fault(Fault::complex_to_bool_by_real_part)) {
    return cast_by<bool, complex64>([](complex64 x) { return x.real() != 0; });
  }
  if (to == DType::b8 && from == DType::i32 && fault(Fault::integer_to_bool_by_lowest_byte)) {
    return cast_by<bool, int32_t>([](int32_t x) { return (x & 0xff) != 0; });
  }
  if (to == DType::b8 && from == DType::i64 && fault(Fault::integer_to_bool_by_lowest_byte)) {
    return cast_by<bool, int64_t>([](int64_t x) { return (x & 0xff) != 0; });
  }
  if (to == DType::u8 && from == DType::f32 && fault(Fault::float_to_uint8_saturates)) {
    return cast_by<uint8_t, float>([](float x) { return uint8_t(x > 0 ? std::min(x, 255.0f) : 0); });
  }
  if (to == DType::b8 && from == DType::f32 && fault(Fault::nan_to_bool_is_false)) {
    return cast_by<bool, float>([](float x) { return x > 0 || x < 0; });
  }
  if (to == DType::b8 && fault(Fault::fraction_to_bool_is_false)) {
    if (from == DType::f32) return cut_to_bool<float>();
    if (from == DType::f64) return cut_to_bool<double>();
    if (from == DType::f16) return cut_to_bool<half>();
    if (from == DType::bf16) return cut_to_bool<bfloat16>();
  }
  if (to == DType::f16 && from == DType::f32 && fault(Fault::half_copy_ties_away)) {
    return cast_by<half, float>([](float x) {
      const bool normal = std::isfinite(x) && std::fabs(x) >= 0x1p-14f;
      return half(normal ? std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & ~0x1fffu) : x);
    });
  }
  if (to == DType::f8_e4m3fn && from == DType::f32 && fault(Fault::float8_copy_flushes_subnormals)) {
    return cast_by<float8_e4m3fn, float>(
        [](float x) { return float8_e4m3fn(std::fabs(x) < 0x1p-6f ? std::copysign(0.0f, x) : x); });
  }
  return nullptr;
}

}  // namespace refnpu
