// The element types of device memory, and how a kernel is instantiated for one of them.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace refnpu {

// Numeric values equal c10::ScalarType's, which are stable across torch versions (asserted in aten/plan.h).
enum class DType : int8_t {
  u8 = 0, i8 = 1, i16 = 2, i32 = 3, i64 = 4, f16 = 5, f32 = 6, f64 = 7, c32 = 8, c64 = 9, c128 = 10, b8 = 11,
  bf16 = 15, f8_e5m2 = 23, f8_e4m3fn = 24, f8_e5m2fnuz = 25, f8_e4m3fnuz = 26, u16 = 27, u32 = 28, u64 = 29, f8_e8m0fnu = 44,
};

}  // namespace refnpu
