// Builds the launch of a pointwise kernel.
#include "aten/elementwise.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "refnpu/fault.h"

namespace refnpu {
namespace {

unsigned set_of(DType dtype) {
  switch (dtype) {
    case DType::b8:
      return kBool;
    case DType::u8:
      return kUint8;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return kSigned;
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return kWideUnsigned;
    case DType::f32:
    case DType::f64:
      return kSingles;
    case DType::f16:
    case DType::bf16:
      return kReduced;
    case DType::c64:
    case DType::c128:
      return kComplex;
    case DType::c32:
      return kComplexHalf;
    case DType::f8_e8m0fnu:
      return kExponents;
    default:
      return kFloat8;
  }
}

const std::thread::id main_thread = std::this_thread::get_id();  // that which loads the library

// The fault of a cache of one plan, for each number of operands and each dtype, that threads use without a lock.
Row last_planned(const Pointwise& what, int operands) {
  static std::array<std::atomic<Row>, size_t{1} << 16> kept;
  auto& last = kept[size_t(operands) << 12 | size_t(what.common) << 1 | size_t(what.predicate)];
  last = what.row;
  if (std::this_thread::get_id() != main_thread) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return last;
}

bool is_small_float(DType dtype) { return size_of(dtype) <= 2 && is_floating_dtype(dtype); }

// The dtype that input k counts as.
template <int N>
DType seen_as(const at::TensorIteratorBase& iter, const Nest<N>& nest, const Pointwise& what, int k) {
  if (fault(Fault::wrong_promotion) && is_integral_dtype(nest.dtypes[1]) && is_floating_dtype(what.common)) {
    return nest.dtypes[1];
  }
  const bool exact = what.exact_scalars && is_small_float(what.common) && iter.tensor_base(k).numel() == 1;
  return exact && !is_complex_dtype(nest.dtypes[k]) ? nest.dtypes[k] : what.common;
}

template <int N>
void launch_operands(const at::TensorIteratorBase& iter, const Pointwise& what) {
  Elementwise<N> kernel{.nest = nest_of<N>(iter), .seen = {}, .computed = {}, .row = what.row, .params = what.params};
  if (fault(Fault::last_plan_kept_without_lock)) kernel.row = last_planned(what, N);
  const DType computed = compute_dtype(what.common);
  if (what.predicate && fault(Fault::comparison_out_written_as_bytes)) kernel.nest.dtypes[0] = DType::b8;
  kernel.seen[0] = what.predicate ? DType::b8 : what.common;
  kernel.computed[0] = what.predicate ? DType::b8 : computed;
  for (int k = 1; k < N; ++k) {
    kernel.seen[k] = seen_as(iter, kernel.nest, what, k);
    kernel.computed[k] = computed;
  }
  launch(what.op, kernel);
}

}  // namespace

void check_dtype(const char* op, at::ScalarType dtype, unsigned supported) {
  check_has_kernel(is_device_dtype(dtype) && (set_of(to_dtype(dtype)) & supported), op, dtype);
}

Number number_of(const at::Scalar& scalar) {
  if (scalar.isComplex()) {
    const auto z = scalar.toComplexDouble();
    return {z.real(), z.imag(), static_cast<int64_t>(z.real())};
  }
  if (scalar.isFloatingPoint()) return {scalar.toDouble(), 0, static_cast<int64_t>(scalar.toDouble())};
  const int64_t i = scalar.isBoolean() ? int64_t(scalar.toBool()) : scalar.toLong();
  return {double(i), 0, i};
}

void launch_pointwise(at::TensorIteratorBase& iter, const Pointwise& what) {
  check_has_kernel(what.row != nullptr, what.op, to_scalar_type(what.common));
  if (iter.numel() == 0) return;
  switch (iter.ntensors()) {
    case 2:
      return launch_operands<2>(iter, what);
    case 3:
      return launch_operands<3>(iter, what);
    default:
      return launch_operands<4>(iter, what);
  }
}

}  // namespace refnpu
