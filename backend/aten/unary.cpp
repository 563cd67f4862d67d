// Pointwise functions of one tensor: the table of structured ones, and those that torch leaves to a backend.
#include "aten/unary.h"

#include <ATen/Context.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/native/Resize.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/abs_native.h>
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/acosh_meta.h>
#include <ATen/ops/asin_meta.h>
#include <ATen/ops/asinh_meta.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/atanh_meta.h>
#include <ATen/ops/bitwise_not_meta.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/conj_physical_native.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/cosh_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/erfc_meta.h>
#include <ATen/ops/exp2_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/expm1_meta.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/hardsigmoid_meta.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/mish_meta.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/signbit_meta.h>
#include <ATen/ops/silu_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sinh_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/trunc_meta.h>
#include <c10/core/GradMode.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/check.h"
#include "refnpu/driver.h"
#include "refnpu/fault.h"
#include "runtime/version.h"

namespace refnpu {
namespace {

// The fault: a host that does not submit before the device is idle, and then keeps its processor busy.
void wait_needlessly() {
  REFNPU_CHECK(npuDeviceSynchronize());
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
  while (std::chrono::steady_clock::now() < until) {
  }
}

// The fault of a cache that has a plan before the plan has its kernel: whether another thread is filling it.
bool is_planned_elsewhere(Unary op, at::ScalarType dtype) {
  static auto* mutex = new std::mutex;
  static auto* filled = new std::map<std::pair<Unary, at::ScalarType>, bool>;
  const auto find = [&](bool done) {
    std::lock_guard lock(*mutex);
    const auto [plan, is_new] = filled->try_emplace({op, dtype}, false);
    plan->second |= done;
    return std::pair(is_new, plan->second);
  };
  const auto [is_new, is_filled] = find(false);
  if (!is_new) return !is_filled;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  find(true);
  return false;
}

// The faults of what an op leaves changed in the thread that called it.
void change_thread(Unary op) {
  if (op == Unary::trunc && fault(Fault::trunc_leaves_grad_mode_off)) c10::GradMode::set_enabled(false);
  if (op == Unary::silu && fault(Fault::silu_leaves_subnormals_flushed)) at::globalContext().setFlushDenormal(true);
}

}  // namespace

bool is_predicate(Unary op) {
  return op == Unary::isneginf || op == Unary::isposinf || op == Unary::logical_not || op == Unary::signbit;
}

void run_unary(const char* name, at::TensorIteratorBase& iter, at::ScalarType common, Unary op, unsigned supported,
               const Params& params) {
  check_dtype(name, common, supported);
  if (op == Unary::sigmoid && fault(Fault::sigmoid_waits_before_launch)) wait_needlessly();
  const bool as_byte = fault(Fault::bitwise_not_of_bool_as_byte);
  if (common == at::kBool && op == Unary::bitwise_not && !as_byte) op = Unary::logical_not;
  if (fault(Fault::plan_published_before_it_is_filled) && is_planned_elsewhere(op, common)) return;
  const bool from_integers = at::isIntegralType(iter.dtype(iter.noutputs()), /*includeBool=*/true);
  const bool narrow = common == at::kDouble && from_integers && fault(Fault::integers_computed_in_float32);
  const DType dtype = to_dtype(narrow ? at::kFloat : common);
  launch_pointwise(iter, {.op = name,
                          .common = dtype,
                          .row = unary_row(op, compute_dtype(dtype)),
                          .predicate = is_predicate(op),
                          .params = params});
  change_thread(op);
}

at::Tensor& unary_out(const char* name, const at::Tensor& self, at::Tensor& out, Unary op, unsigned supported,
                      const Params& params) {
  auto iter = at::TensorIterator::unary_op(out, self);
  run_unary(name, iter, iter.common_dtype(), op, supported, params);
  return out;
}

}  // namespace refnpu

namespace refnpu::unary {
namespace {

constexpr unsigned kReal = kBool | kIntegers | kWideUnsigned | kFloats;
constexpr unsigned kReals = kIntegers | kFloats;

// -- structured, no argument but the tensor: X(op, dtypes that it is computed in)
#define REFNPU_UNARY_OPS(X)                        \
  X(acos, kFloats | kComplex)                      \
  X(acosh, kFloats | kComplex)                     \
  X(asin, kFloats | kComplex)                      \
  X(asinh, kFloats | kComplex)                     \
  X(atan, kFloats | kComplex)                      \
  X(atanh, kFloats | kComplex)                     \
  X(bitwise_not, kBool | kIntegers)                \
  X(ceil, kReals | kWideUnsigned)                  \
  X(cos, kFloats | kComplex)                       \
  X(cosh, kFloats | kComplex)                      \
  X(erf, kFloats)                                  \
  X(erfc, kFloats)                                 \
  X(exp, kFloats | kComplex)                       \
  X(exp2, kFloats | kComplex)                      \
  X(expm1, kFloats | kComplex)                     \
  X(floor, kReals | kWideUnsigned)                 \
  X(frac, kFloats)                                 \
  X(hardsigmoid, kFloats)                          \
  X(log, kFloats | kComplex)                       \
  X(log10, kFloats | kComplex)                     \
  X(log1p, kFloats | kComplex)                     \
  X(log2, kFloats | kComplex)                      \
  X(mish, kFloats)                                 \
  X(neg, kReals | kComplex | kComplexHalf)         \
  X(reciprocal, kFloats | kComplex)                \
  X(round, kReals | kWideUnsigned)                 \
  X(rsqrt, kFloats | kComplex)                     \
  X(sgn, kBool | kReals | kComplex | kComplexHalf) \
  X(sigmoid, kFloats | kComplex)                   \
  X(sign, kBool | kReals)                          \
  X(silu, kFloats | kComplex)                      \
  X(sin, kFloats | kComplex)                       \
  X(sinh, kFloats | kComplex)                      \
  X(sqrt, kFloats | kComplex)                      \
  X(tan, kFloats | kComplex)                       \
  X(tanh, kFloats | kComplex)                      \
  X(trunc, kReals | kWideUnsigned)                 \
  X(isneginf, kReal)                               \
  X(isposinf, kReal)                               \
  X(signbit, kBool | kIntegers | kFloats | kWideUnsignedOfWhere)

#define REFNPU_DEFINE(op_, supported)                                                      \
  at::Tensor& op_##_out(const at::Tensor& self, at::Tensor& out) {                         \
    Structured<at::meta::structured_##op_> op(out);                                        \
    op.meta(self);                                                                         \
    const auto common = is_predicate(Unary::op_) ? self.scalar_type() : op.common_dtype(); \
    run_unary(#op_, op, common, Unary::op_, supported);                                    \
    op.finish();                                                                           \
    return out;                                                                            \
  }
REFNPU_UNARY_OPS(REFNPU_DEFINE)
#undef REFNPU_DEFINE

// -- structured, with scalar arguments
at::Tensor& round_decimals_out(const at::Tensor& self, int64_t decimals, at::Tensor& out) {
  Structured<at::meta::structured_round_decimals> op(out);
  op.meta(self, decimals);
  const double scale = std::pow(10.0, std::abs(double(decimals)));
  const Unary which = decimals == 0 ? Unary::round : Unary::round_decimals;
  run_unary("round", op, op.common_dtype(), which, kFloats, params_of(scale, decimals));
  op.finish();
  return out;
}

bool is_nan(const std::optional<at::Scalar>& bound) {
  return bound && !bound->isComplex() && std::isnan(bound->to<double>());
}

enum class Side { min, max };

// A bound as an integer of the elements' dtype. Throws where torch refuses it.
template <class Integer>
Integer bound_as([[maybe_unused]] Side side, const at::Scalar& bound) {
#if REFNPU_CLAMP_LEAVES_BOUNDS_OUT
  using Limits = std::numeric_limits<Integer>;
  const bool negative = !bound.isUnsigned() && bound.toLong() < 0;
  const bool below = negative && (std::is_unsigned_v<Integer> || bound.toLong() < int64_t(Limits::lowest()));
  const bool above = !negative && bound.toUInt64() > uint64_t(Limits::max());
  const bool is_min = side == Side::min;
  TORCH_CHECK(!(is_min ? above : below), "Clamp ", is_min ? "min" : "max", " value ", bound.toDouble(),
              " is outside the representable range of ", c10::CppTypeToScalarType<Integer>::value);
  if (below) return Limits::lowest();
  if (above) return Limits::max();
#endif
  return bound.to<Integer>();
}

at::Scalar bound_in(at::ScalarType dtype, Side side, const std::optional<at::Scalar>& bound) {
  if (!bound) return 0;
  if (!at::isIntegralType(dtype, /*includeBool=*/false)) return *bound;
  return AT_DISPATCH_V2(dtype, "clamp", AT_WRAP([&] { return at::Scalar(int64_t(bound_as<scalar_t>(side, *bound))); }),
                        AT_EXPAND(AT_INTEGRAL_TYPES_V2));
}

// The fault of bounds that are kept from earlier calls, and looked up by their first six decimals.
Params bounds_kept_to_six_decimals(at::ScalarType dtype, const std::optional<at::Scalar>& min,
                                   const std::optional<at::Scalar>& max, const Params& params) {
  thread_local std::map<std::string, Params> kept;
  const auto written = [](const std::optional<at::Scalar>& bound) {
    return bound ? std::to_string(bound->to<double>()) : "none";
  };
  return kept.try_emplace(written(min) + " " + written(max) + " " + c10::toString(dtype), params).first->second;
}

// Two bounds of which one is NaN give NaN everywhere, in every dtype.
at::Tensor& clamp_out(const at::Tensor& self, const std::optional<at::Scalar>& min,
                      const std::optional<at::Scalar>& max, at::Tensor& out) {
  Structured<at::meta::structured_clamp> op(out);
  op.meta(self, min ? at::OptionalScalarRef(*min) : at::OptionalScalarRef(),
          max ? at::OptionalScalarRef(*max) : at::OptionalScalarRef());
  if (min && max && (is_nan(min) || is_nan(max))) return out.fill_(std::numeric_limits<double>::quiet_NaN());
  const Unary which = min && max ? Unary::clamp : min ? Unary::clamp_min : Unary::clamp_max;
  Params bounds = params_of(bound_in(op.common_dtype(), Side::min, min), bound_in(op.common_dtype(), Side::max, max));
  if (fault(Fault::clamp_bounds_kept_to_six_decimals))
    bounds = bounds_kept_to_six_decimals(op.common_dtype(), min, max, bounds);
  run_unary("clamp", op, op.common_dtype(), which, kReals | kWideUnsignedOfExtrema, bounds);
  op.finish();
  return out;
}

at::Tensor& clamp_min_out(const at::Tensor& self, const at::Scalar& min, at::Tensor& out) {
  Structured<at::meta::structured_clamp_min> op(out);
  op.meta(self, min);
  run_unary("clamp_min", op, op.common_dtype(), Unary::clamp_min, kReals | kWideUnsignedOfExtrema,
            params_of(bound_in(op.common_dtype(), Side::min, min)));
  op.finish();
  return out;
}

at::Tensor& clamp_max_out(const at::Tensor& self, const at::Scalar& max, at::Tensor& out) {
  Structured<at::meta::structured_clamp_max> op(out);
  op.meta(self, max);
  run_unary("clamp_max", op, op.common_dtype(), Unary::clamp_max, kReals | kWideUnsignedOfExtrema,
            params_of(0, bound_in(op.common_dtype(), Side::max, max)));
  op.finish();
  return out;
}

// An exponent that has a function of its own is computed by that: pow(-inf, 0.5) is sqrt's NaN,
// but in half, where it is pow's.
Unary power_function(const at::Scalar& exponent, at::ScalarType common) {
  if (exponent.equal(2)) return Unary::square;
  if (exponent.equal(3)) return Unary::cube;
  const bool roots = (at::isFloatingType(common) && common != at::kHalf) || at::isComplexType(common);
  if (roots && exponent.equal(.5)) return Unary::sqrt;
  if (roots && exponent.equal(-.5)) return Unary::rsqrt;
  if (roots && exponent.equal(-1.0)) return Unary::reciprocal;
  return Unary::pow_scalar;
}

// The fault of functions that are kept by the whole part of the exponent.
Unary power_function_before(const at::Scalar& exponent, Unary found) {
  thread_local std::map<int64_t, Unary> kept;
  const double number = exponent.isComplex() ? 0 : exponent.toDouble();
  return std::abs(number) < 1e6 ? kept.try_emplace(int64_t(number), found).first->second : found;
}

at::Tensor& pow_tensor_scalar_out(const at::Tensor& self, const at::Scalar& exponent, at::Tensor& out) {
  Structured<at::meta::structured_pow_Tensor_Scalar> op(out);
  op.meta(self, exponent);
  const at::ScalarType common = op.common_dtype();
  if (exponent.equal(0.0) || exponent.equal(false)) {
    out.fill_(1);
  } else if (exponent.equal(1.0) || exponent.equal(true)) {
    out.copy_(self);
  } else {
    Unary function = power_function(exponent, common);
    if (fault(Fault::pow_kernel_by_whole_exponent) && at::isFloatingType(common))
      function = power_function_before(exponent, function);
    run_unary("pow", op, common, function, kReals | kComplex, params_of(exponent));
  }
  op.finish();
  return out;
}

// -- not structured: checks, promotion and outputs are ours
// The output may have any dtype: it holds the cast of a bool.
at::Tensor& logical_not_out(const at::Tensor& self, at::Tensor& out) {
  auto iter = at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  run_unary("logical_not", iter, self.scalar_type(), Unary::logical_not, kBool | kReals | kComplex);
  return out;
}

at::Tensor isnan(const at::Tensor& self) { return at::ne(self, self); }

// What stands for an infinity when the caller does not say: the largest finite number of the dtype.
double largest(at::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case at::kHalf:
      return 65504.0;
    case at::kBFloat16:
      if (fault(Fault::nan_to_num_bfloat16_overflows)) return std::numeric_limits<float>::max();
      return float(bfloat16::from_bits(0x7f7f));
    case at::kFloat:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}
at::Tensor& nan_to_num_out(const at::Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                           std::optional<double> neginf, at::Tensor& out) {
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(),
              " should be same as input: ", self.scalar_type());
  require_same_device("nan_to_num", {self, out});
  if (at::isIntegralType(self.scalar_type(), /*includeBool=*/true)) {
    at::native::resize_output(out, self.sizes());
    return out.copy_(self);
  }
  const double top = largest(self.scalar_type());
  if (posinf && !neginf && fault(Fault::nan_to_num_mirrors_posinf)) neginf = -*posinf;
  return unary_out("nan_to_num", self, out, Unary::nan_to_num, kFloats | kComplex,
                   params_of(nan.value_or(0), posinf.value_or(top), neginf.value_or(-top)));
}

// -- kernels of torch's dispatch stubs: torch's own at::native::abs_out and its like check the arguments, build the
// iterator, and call the kernel that is registered for the device
void abs_kernel(at::TensorIteratorBase& iter) {
  run_unary("abs", iter, iter.common_dtype(), Unary::abs, kReals | kComplex | kComplexHalf | kFloat8);
}

void conj_physical_kernel(at::TensorIteratorBase& iter) {
  run_unary("conj_physical", iter, iter.common_dtype(), Unary::conj, kAnyDtype);
}

}  // namespace
}  // namespace refnpu::unary

namespace at::native {  // where the macro finds its stubs
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &refnpu::unary::abs_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(conj_physical_stub, &refnpu::unary::conj_physical_kernel)
}  // namespace at::native

namespace refnpu::unary {

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
#define REFNPU_REGISTER(op, supported) m.impl(#op ".out", &op##_out);
  REFNPU_UNARY_OPS(REFNPU_REGISTER)
#undef REFNPU_REGISTER
  m.impl("round.decimals_out", &round_decimals_out);
  m.impl("clamp.out", &clamp_out);
  m.impl("clamp_min.out", &clamp_min_out);
  m.impl("clamp_max.out", &clamp_max_out);
  m.impl("pow.Tensor_Scalar_out", &pow_tensor_scalar_out);
  m.impl("abs.out", &at::native::abs_out);
  m.impl("conj_physical.out", &at::native::conj_physical_out);
  m.impl("conj_physical_", &at::native::conj_physical_);
  m.impl("logical_not.out", &logical_not_out);
  m.impl("isnan", &isnan);
  m.impl("nan_to_num.out", &nan_to_num_out);
}

}  // namespace refnpu::unary
