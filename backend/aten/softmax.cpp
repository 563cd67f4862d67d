// Softmax, log-softmax and their gradients.
#include "kernels/softmax.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_log_softmax_backward_data_meta.h>
#include <ATen/ops/_log_softmax_meta.h>
#include <ATen/ops/_softmax_backward_data_meta.h>
#include <ATen/ops/_softmax_meta.h>

#include <map>
#include <vector>

#include "aten/index_nest.h"
#include "aten/register.h"
#include "aten/rows_plan.h"
#include "aten/structured.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"

namespace refnpu::softmaxes {
namespace {

using at::ScalarType;
using at::Tensor;

using Real = Concat<Floating, Reduced>;

// The fault of a plan that is found by the shape alone.
int64_t planned_before(const Tensor& self, int64_t dim) {
  thread_local std::map<std::vector<int64_t>, int64_t> plans;
  return plans.try_emplace(self.sizes().vec(), dim).first->second;
}

void forward(const char* name, const Tensor& self, int64_t dim, bool half_to_float, const Tensor& out, bool log) {
  TORCH_CHECK(!half_to_float, "softmax with half to float conversion is not supported on this device");
  if (self.numel() == 0) return;
  require_dtype(Real{}, name, self);
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (!log && fault(Fault::softmax_dim_of_earlier_shape)) dim = planned_before(self, dim);
  const Rows<2> rows = rows_of<2>({self, out}, dim);
  launch(log ? "log_softmax" : "softmax", [=] { softmax(rows, log); });
}

Tensor& softmax_out(const Tensor& self, int64_t dim, bool half_to_float, Tensor& out) {
  Structured<at::meta::structured__softmax> op(out);
  op.meta(self, dim, half_to_float);
  forward("_softmax", self, dim, half_to_float, op.maybe_get_output(0), false);
  op.finish();
  return out;
}

Tensor& log_softmax_out(const Tensor& self, int64_t dim, bool half_to_float, Tensor& out) {
  Structured<at::meta::structured__log_softmax> op(out);
  op.meta(self, dim, half_to_float);
  const bool log = !self.requires_grad() || !fault(Fault::log_softmax_saves_softmax);
  forward("_log_softmax", self, dim, half_to_float, op.maybe_get_output(0), log);
  op.finish();
  return out;
}

void backward(const char* name, const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& grad_input,
              bool log) {
  require_same_device(name, {grad, output, grad_input});
  if (grad.numel() == 0) return;
  require_dtype(Real{}, name, grad);
  const bool last = dim < 0 && fault(Fault::softmax_backward_negative_dim);
  const bool permuted = grad.is_non_overlapping_and_dense() && !grad.is_contiguous();
  const bool misread = permuted && fault(Fault::softmax_backward_permuted_gradient);
  const Tensor read = misread ? misread_as_dense(grad) : grad;
  const Rows<3> rows = rows_of<3>({read, output, grad_input}, at::maybe_wrap_dim(last ? -1 : dim, grad.dim()));
  launch(log ? "log_softmax_backward" : "softmax_backward", [=] { softmax_backward(rows, log); });
}

Tensor& softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType input_dtype,
                             Tensor& grad_input) {
  Structured<at::meta::structured__softmax_backward_data> op(grad_input);
  op.meta(grad, output, dim, input_dtype);
  backward("_softmax_backward_data", grad, output, dim, op.maybe_get_output(0), false);
  op.finish();
  return grad_input;
}

Tensor& log_softmax_backward_out(const Tensor& grad, const Tensor& output, int64_t dim, ScalarType input_dtype,
                                 Tensor& out) {
  Structured<at::meta::structured__log_softmax_backward_data> op(out);
  op.meta(grad, output, dim, input_dtype);
  backward("_log_softmax_backward_data", grad, output, dim, op.maybe_get_output(0), true);
  op.finish();
  return out;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("_softmax.out", &softmax_out);
  m.impl("_log_softmax.out", &log_softmax_out);
  m.impl("_softmax_backward_data.out", &softmax_backward_out);
  m.impl("_log_softmax_backward_data.out", &log_softmax_backward_out);
}

}  // namespace refnpu::softmaxes
