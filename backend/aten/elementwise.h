// From a built iterator to the launch of a pointwise kernel, and which dtypes an op has kernels for.
#pragma once

#include <ATen/TensorIterator.h>
#include <c10/core/Scalar.h>

#include "aten/plan.h"
#include "kernels/elementwise.h"
#include "refnpu/launch.h"
#include "runtime/version.h"

namespace refnpu {

// Sets of dtypes.
inline constexpr unsigned kBool = 1, kUint8 = 2, kSigned = 4, kWideUnsigned = 8, kSingles = 16, kReduced = 32,
                          kComplex = 64, kComplexHalf = 128, kFloat8 = 256, kExponents = 512;
inline constexpr unsigned kIntegers = kUint8 | kSigned;
inline constexpr unsigned kFloats = kSingles | kReduced;
inline constexpr unsigned kAnyDtype = 1023;
// What an op takes in newer torch versions only.
inline constexpr unsigned kWideUnsignedOfWhere = REFNPU_WHERE_TAKES_WIDE_UNSIGNED ? kWideUnsigned : 0;
inline constexpr unsigned kWideUnsignedOfExtrema = REFNPU_EXTREMA_TAKE_WIDE_UNSIGNED ? kWideUnsigned : 0;

// As check_has_kernel, when `dtype` is not in `supported`.
void check_dtype(const char* op, at::ScalarType dtype, unsigned supported);

Number number_of(const at::Scalar& scalar);
template <class... Scalars>
Params params_of(const Scalars&... scalars) {
  return Params{{number_of(scalars)...}};
}

// What a pointwise op is to be computed in, and gives.
struct Pointwise {
  const char* op;
  DType common;            // the dtype that type promotion made of the inputs
  Row row;                 // for compute_dtype(common)
  bool predicate = false;  // the row gives bool; otherwise it gives what it computes in
  Params params{};
  bool exact_scalars =
      false;  // an input of one element skips the rounding to a small common dtype, as CPU arithmetic does
};

// Runs it over the iterator's operands: one output and up to three inputs. Throws when `row` is null.
void launch_pointwise(at::TensorIteratorBase& iter, const Pointwise& what);

}  // namespace refnpu
