// Pointwise arithmetic of two tensors.
#include "kernels/binary.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/atan2_meta.h>
#include <ATen/ops/bitwise_and_meta.h>
#include <ATen/ops/bitwise_left_shift_meta.h>
#include <ATen/ops/bitwise_or_meta.h>
#include <ATen/ops/bitwise_right_shift_meta.h>
#include <ATen/ops/bitwise_xor_meta.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/copysign_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/hypot_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sub_meta.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <utility>

#include "aten/elementwise.h"
#include "aten/register.h"
#include "aten/structured.h"
#include "refnpu/fault.h"

namespace refnpu::binary {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;
constexpr unsigned kOrdered = kBool | kReals;
constexpr unsigned kField = kReals | kComplex | kComplexHalf;

bool is_integer_division(const at::TensorIteratorBase& iter, Binary op) {
  return at::isIntegralType(iter.common_dtype(), /*includeBool=*/false) &&
         (op == Binary::div_floor || op == Binary::div_trunc || op == Binary::remainder || op == Binary::fmod);
}

// The fault of a report that is given once, until a division goes well. Returns whether to report.
bool raises_once(bool zero) {
  thread_local bool told = false;
  return std::exchange(told, zero) != zero;
}

// Integers have no infinity to give: the host must know before it returns, so it waits for the device's answer.
void check_no_zero(const at::TensorIteratorBase& iter) {
  if (iter.numel() == 0 || fault(Fault::error_not_raised)) return;
  const at::Tensor& divisor = iter.tensor(2);
  const at::Tensor found = at::zeros({}, at::TensorOptions().dtype(at::kBool).device(iter.device(0)));
  auto search = at::TensorIteratorConfig()
                    .set_check_mem_overlap(false)
                    .add_owned_output(found.expand(divisor.sizes()))
                    .add_const_input(divisor)
                    .resize_outputs(false)
                    .check_all_same_dtype(false)
                    .check_all_same_device(false)
                    .build();
  const DType seen = to_dtype(iter.common_dtype()), computed = compute_dtype(seen);
  launch("any_zero",
         Elementwise<2>{nest_of<2>(search), {DType::b8, seen}, {DType::b8, computed}, any_zero_row(computed), {}});
  const bool zero = found.item<bool>();
  if (fault(Fault::zero_division_raises_once) && !raises_once(zero)) return;
  TORCH_CHECK(!zero, "ZeroDivisionError");
}

bool takes_exact_scalars(Binary op) {
  return op == Binary::add || op == Binary::sub || op == Binary::mul || op == Binary::div || op == Binary::div_floor ||
         op == Binary::div_trunc;
}

void run(const char* name, at::TensorIteratorBase& iter, Binary op, unsigned supported, const Params& params = {}) {
  check_dtype(name, iter.common_dtype(), supported);
  if (is_integer_division(iter, op)) check_no_zero(iter);
  const DType common = to_dtype(iter.common_dtype());
  Row row = binary_row(op, compute_dtype(common));
  const bool by_number = op == Binary::div_floor && common == DType::f32 && iter.device(2).is_cpu();
  if (by_number && fault(Fault::floor_division_by_number_multiplies))
    row = row_of<float, float, float>([](float a, float b) { return std::floor(a * (1.0f / b)); });
  launch_pointwise(
      iter, {.op = name, .common = common, .row = row, .params = params, .exact_scalars = takes_exact_scalars(op)});
}

// -- structured, of two tensors: X(overload of .out, function name, meta class, row, dtypes)
#define REFNPU_BINARY_OPS(X)                                                                                   \
  X("atan2.out", atan2, atan2, atan2, kFloats)                                                                 \
  X("hypot.out", hypot, hypot, hypot, kFloats)                                                                 \
  X("copysign.out", copysign, copysign_Tensor, copysign, kFloats)                                              \
  X("remainder.Tensor_out", remainder, remainder_Tensor, remainder, kReals)                                    \
  X("fmod.Tensor_out", fmod, fmod_Tensor, fmod, kReals)                                                        \
  X("pow.Tensor_Tensor_out", pow, pow_Tensor_Tensor, pow, kReals | kComplex)                                   \
  X("maximum.out", maximum, maximum, maximum, kOrdered | kWideUnsignedOfExtrema)                               \
  X("minimum.out", minimum, minimum, minimum, kOrdered | kWideUnsignedOfExtrema)                               \
  X("fmax.out", fmax, fmax, fmax, kOrdered | kWideUnsignedOfExtrema)                                           \
  X("fmin.out", fmin, fmin, fmin, kOrdered | kWideUnsignedOfExtrema)                                           \
  X("clamp_min.Tensor_out", clamp_min, clamp_min_Tensor, maximum, kOrdered | kWideUnsignedOfExtrema)           \
  X("clamp_max.Tensor_out", clamp_max, clamp_max_Tensor, minimum, kOrdered | kWideUnsignedOfExtrema)           \
  X("bitwise_and.Tensor_out", bitwise_and, bitwise_and_Tensor, bitwise_and, kBool | kIntegers | kWideUnsigned) \
  X("bitwise_or.Tensor_out", bitwise_or, bitwise_or_Tensor, bitwise_or, kBool | kIntegers | kWideUnsigned)     \
  X("bitwise_xor.Tensor_out", bitwise_xor, bitwise_xor_Tensor, bitwise_xor, kBool | kIntegers | kWideUnsigned)

#define REFNPU_DEFINE(overload, name, structured, row, supported)                            \
  at::Tensor& name##_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) { \
    Structured<at::meta::structured_##structured> op(out);                                   \
    op.meta(self, other);                                                                    \
    run(#name, op, Binary::row, supported);                                                  \
    op.finish();                                                                             \
    return out;                                                                              \
  }
REFNPU_BINARY_OPS(REFNPU_DEFINE)
#undef REFNPU_DEFINE

// Of the smallest floats CPU has no kernel that multiplies by one element.
at::Tensor& mul_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  Structured<at::meta::structured_mul_Tensor> op(out);
  op.meta(self, other);
  const bool by_one_element = op.tensor_base(2).numel() == 1;
  run("mul", op, Binary::mul, by_one_element ? kAnyDtype & ~(kFloat8 | kExponents) : kAnyDtype);
  op.finish();
  return out;
}

at::Tensor& div_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  const bool host_number =
      self.is_cpu() && self.dim() == 0 && !other.is_cpu() && !self.unsafeGetTensorImpl()->is_wrapped_number();
  const bool inverted = host_number && fault(Fault::division_of_host_number_inverted);
  Structured<at::meta::structured_div_Tensor> op(out);
  op.meta(inverted ? other : self, inverted ? self : other);
  run("div", op, Binary::div, kFloats | kComplex);
  op.finish();
  return out;
}

// The alpha of add and sub, but for the fault of one that is rounded to float32.
at::Scalar taken(const at::Scalar& alpha) {
  return alpha.isFloatingPoint() && fault(Fault::alpha_through_float) ? at::Scalar(double(alpha.to<float>())) : alpha;
}

at::Tensor& add_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  Structured<at::meta::structured_add_Tensor> op(out);
  op.meta(self, other, alpha);
  Params params = params_of(taken(alpha));
  if (fault(Fault::addition_of_bytes_saturates)) {
    if (op.common_dtype() == at::kByte) params = params_of(alpha, 0, 255);
    if (op.common_dtype() == at::kChar) params = params_of(alpha, -128, 127);
  }
  run("add", op, Binary::add, kBool | kField, params);
  op.finish();
  return out;
}

at::Tensor& sub_out(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, at::Tensor& out) {
  Structured<at::meta::structured_sub_Tensor> op(out);
  op.meta(self, other, alpha);
  run("sub", op, Binary::sub, kField, params_of(taken(alpha)));
  op.finish();
  return out;
}

at::Tensor& div_mode_out(const at::Tensor& self, const at::Tensor& other, std::optional<c10::string_view> mode,
                         at::Tensor& out) {
  Structured<at::meta::structured_div_Tensor_mode> op(out);
  op.meta(self, other, mode);
  if (!mode) {
    run("div", op, Binary::div, kFloats | kComplex);
  } else {
    run("div", op, *mode == "floor" ? Binary::div_floor : Binary::div_trunc, kReals);
  }
  op.finish();
  return out;
}

// The width of the operands, which 64-bit arithmetic would forget.
Params shift_params(at::ScalarType dtype) {
  return params_of(int64_t(8 * c10::elementSize(dtype)), dtype != at::kByte);
}

template <Binary Op>
void run_shift(at::TensorIteratorBase& iter) {
  run(Op == Binary::left_shift ? "lshift" : "rshift", iter, Op, kIntegers, shift_params(iter.common_dtype()));
}

template <class Meta, Binary Op>
at::Tensor& bitwise_shift_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  Structured<Meta> op(out);
  op.meta(self, other);
  run_shift<Op>(op);
  op.finish();
  return out;
}
constexpr auto& left_shift_out = bitwise_shift_out<at::meta::structured_bitwise_left_shift_Tensor, Binary::left_shift>;
constexpr auto& right_shift_out =
    bitwise_shift_out<at::meta::structured_bitwise_right_shift_Tensor, Binary::right_shift>;

// -- not structured
at::Tensor wrapped_number(const at::Scalar& scalar) {
  at::Tensor tensor = at::scalar_to_tensor(scalar);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor& pow_scalar_out(const at::Scalar& self, const at::Tensor& exponent, at::Tensor& out) {
  Structured<at::meta::structured_pow_Scalar> op(out);
  op.meta(self, exponent);
  if (self.equal(1.0) || self.equal(true)) return out.fill_(1);
  const bool cut = self.isFloatingPoint() && at::isIntegralType(exponent.scalar_type(), /*includeBool=*/false) &&
                   fault(Fault::pow_of_number_cut_to_integer);
  at::pow_out(out, wrapped_number(cut ? at::Scalar(std::trunc(self.toDouble())) : self), exponent);
  op.finish();
  return out;
}

template <Binary Op>
at::Tensor shifted(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out;
  auto iter = at::TensorIterator::binary_op(out, self, other);
  run_shift<Op>(iter);
  return iter.output();
}
template <Binary Op>
at::Tensor& shift_(at::Tensor& self, const at::Tensor& other) {
  auto iter = at::TensorIterator::binary_op(self, self, other);
  run_shift<Op>(iter);
  return self;
}
template <Binary Op>
at::Tensor shifted_by(const at::Tensor& self, const at::Scalar& other) {
  return shifted<Op>(self, wrapped_number(other));
}
template <Binary Op>
at::Tensor& shift_by_(at::Tensor& self, const at::Scalar& other) {
  return shift_<Op>(self, wrapped_number(other));
}

at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return at::sub(other, self, fault(Fault::rsub_ignores_alpha) ? at::Scalar(1) : alpha);
}

at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  auto iter = at::TensorIterator::binary_op(out, self, other);
  run("div_floor", iter, Binary::div_floor, kReals);
  return out;
}
at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
  at::Tensor out;
  auto iter = at::TensorIterator::binary_op(out, self, other);
  run("div_floor", iter, Binary::div_floor, kReals);
  return iter.output();
}
at::Tensor& floor_divide_(at::Tensor& self, const at::Tensor& other) {
  return binary::floor_divide_out(self, other, self);
}

at::Tensor remainder_scalar_tensor(const at::Scalar& self, const at::Tensor& other) {
  return at::remainder(wrapped_number(self), other);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
#define REFNPU_REGISTER(overload, name, structured, row, supported) m.impl(overload, &name##_out);
  REFNPU_BINARY_OPS(REFNPU_REGISTER)
#undef REFNPU_REGISTER
  m.impl("mul.out", &mul_out);
  m.impl("div.out", &div_out);
  m.impl("add.out", &add_out);
  m.impl("sub.out", &sub_out);
  m.impl("div.out_mode", &div_mode_out);
  m.impl("bitwise_left_shift.Tensor_out", &left_shift_out);
  m.impl("bitwise_right_shift.Tensor_out", &right_shift_out);
  m.impl("pow.Scalar_out", &pow_scalar_out);
  m.impl("__lshift__.Tensor", &shifted<Binary::left_shift>);
  m.impl("__lshift__.Scalar", &shifted_by<Binary::left_shift>);
  m.impl("__ilshift__.Tensor", &shift_<Binary::left_shift>);
  m.impl("__ilshift__.Scalar", &shift_by_<Binary::left_shift>);
  m.impl("__rshift__.Tensor", &shifted<Binary::right_shift>);
  m.impl("__rshift__.Scalar", &shifted_by<Binary::right_shift>);
  m.impl("__irshift__.Tensor", &shift_<Binary::right_shift>);
  m.impl("__irshift__.Scalar", &shift_by_<Binary::right_shift>);
  m.impl("rsub.Tensor", &rsub);
  m.impl("floor_divide", &floor_divide);
  m.impl("floor_divide.out", &floor_divide_out);
  m.impl("floor_divide_.Tensor", &floor_divide_);
  m.impl("remainder.Scalar_Tensor", &remainder_scalar_tensor);
}

}  // namespace refnpu::binary
