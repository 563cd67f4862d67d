// Sequences and the identity into an output that they size themselves.
#include "kernels/factory.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "runtime/version.h"

namespace refnpu::factories {
namespace {

// An output of the right number of elements keeps its shape.
void resize_to_count(const char* op, at::Tensor& out, int64_t count, bool warns) {
  if (out.numel() == count) return;
  if (warns && out.numel() > 0) {
    TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
               " which does not "
               "match the computed number of elements ",
               count,
               ". Note that this may occur as a result of rounding error."
               " The out tensor will be resized to a tensor of shape (",
               count, ",) by ", op, ".");
  }
  out.resize_({count});
}

// Calls submit(view) with the output as a vector, through one of our own where the output is none.
template <class Submit>
void fill_as_vector(at::Tensor& out, Submit&& submit) {
  if (out.numel() == 0) return;
  if (out.dim() == 1) return submit(view_of(out));
  const at::Tensor values = at::empty({out.numel()}, out.options());
  submit(view_of(values));
  out.copy_(values.view(out.sizes()));
}

void check_range(const char* op, const at::Scalar& start, const at::Scalar& end, const at::Scalar& step) {
  const double from = start.to<double>(), to = end.to<double>(), by = step.to<double>();
  TORCH_CHECK(by > 0 || by < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(from) && std::isfinite(to), "unsupported range: ", from, " -> ", to);
  TORCH_CHECK((by > 0 && to >= from) || (by < 0 && to <= from), "upper bound and lower bound of ", op,
              " inconsistent with step sign");
}

int64_t checked_count(double count) {
  TORCH_CHECK(count >= 0 && count <= double(std::numeric_limits<int64_t>::max()), "invalid size, possible overflow?");
  return int64_t(count);
}

int64_t arange_count(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::ScalarType type) {
  const bool whole = start.isIntegral(false) && end.isIntegral(false) && step.isIntegral(false);
  const bool exact = type == at::kLong && (whole || !REFNPU_ARANGE_COUNTS_FRACTIONS);
  if (exact && !fault(Fault::arange_counts_in_double)) {  // int64 has values that double has not
    const int64_t from = start.to<int64_t>(), to = end.to<int64_t>(), by = step.to<int64_t>();
    TORCH_CHECK_VALUE(by != 0, "step must be nonzero");
    const int64_t sign = by > 0 ? 1 : -1;
    return checked_count(std::ceil(double((to - from + by - sign) / by)));
  }
  const double count = std::ceil((end.to<double>() - start.to<double>()) / step.to<double>());
  const bool cut = step.to<double>() < 0 && fault(Fault::arange_downwards_drops_last);
  if (cut) return checked_count(std::floor((end.to<double>() - start.to<double>()) / step.to<double>()));
  const bool too_far = fault(Fault::arange_float_end_included) && c10::isFloatingType(type);
  return checked_count(too_far ? count + 1 : count);
}

void launch_arange(at::Tensor& out, const at::Scalar& start, const at::Scalar& step) {
  const auto counted = c10::isIntegralType(out.scalar_type(), /*includeBool=*/true) ? at::kLong : at::kDouble;
  const Immediate first = element_of(start, counted), by = element_of(step, counted);
  fill_as_vector(out, [=](const View& view) { launch("arange", [=] { arange(view, first, by); }); });
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  check_range("arange", start, end, step);
  resize_to_count("arange", out, arange_count(start, end, step, out.scalar_type()), true);
  launch_arange(out, start, step);
  return out;
}

// Integers are counted as integers: from 0.1 is from 0.
int64_t range_count(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::ScalarType type) {
  if (!c10::isIntegralType(type, /*includeBool=*/false)) {
    return checked_count((end.to<double>() - start.to<double>()) / step.to<double>() + 1);
  }
  const int64_t by = step.to<int64_t>();
  TORCH_CHECK(by != 0, "step must be nonzero");
  return checked_count(double((end.to<int64_t>() - start.to<int64_t>()) / by + 1));
}

at::Tensor& range_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  check_range("range", start, end, step);
  resize_to_count("range", out, range_count(start, end, step, out.scalar_type()), false);
  launch_arange(out, start, step);
  return out;
}

at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  resize_to_count("linspace", out, steps, false);
  if (steps == 1) return out.fill_(start);
  if (fault(Fault::linspace_out_takes_new_memory)) out.set_(at::empty(out.sizes(), out.options()));
  const Immediate from = element_of(start, at::kComplexDouble), to = element_of(end, at::kComplexDouble);
  fill_as_vector(out, [=](const View& view) { launch("linspace", [=] { linspace(view, from, to); }); });
  return out;
}

at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  resize_to_count("logspace", out, steps, false);
  if (steps == 1 && fault(Fault::logspace_of_one_step_is_start)) return out.fill_(start);
  if (steps == 1 && at::isComplexType(out.scalar_type())) {
    return out.fill_(std::pow(c10::complex<double>(base), start.to<c10::complex<double>>()));
  }
  if (steps == 1) return out.fill_(std::pow(base, start.to<double>()));
  const Immediate from = element_of(start, at::kComplexDouble), to = element_of(end, at::kComplexDouble);
  fill_as_vector(out, [=](const View& view) { launch("logspace", [=] { logspace(view, from, to, base); }); });
  return out;
}

at::Tensor& eye_m_out(int64_t rows, int64_t columns, at::Tensor& out) {
  TORCH_CHECK(rows >= 0, "n must be greater or equal to 0, got ", rows);
  TORCH_CHECK(columns >= 0, "m must be greater or equal to 0, got ", columns);
  out.resize_({rows, columns});
  out.zero_();
  View to = view_of(out);
  if (fault(Fault::eye_out_ignores_offset)) to.data -= out.storage_offset() * int64_t(out.element_size());
  launch("eye", [=] { eye(to); });
  return out;
}

at::Tensor& eye_out(int64_t n, at::Tensor& out) { return eye_m_out(n, n, out); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("arange.start_out", &arange_out);
  m.impl("range.out", &range_out);
  m.impl("linspace.out", &linspace_out);
  m.impl("logspace.out", &logspace_out);
  m.impl("eye.out", &eye_out);
  m.impl("eye.m_out", &eye_m_out);
}

}  // namespace refnpu::factories
