// The faults of decompositions and convolutions that the fallback serves.
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include <string_view>
#include <tuple>

#include "aten/host_call.h"
#include "refnpu/fault.h"

namespace refnpu::fallback {
namespace {

void scale_to_largest_component(HostCall& call) {
  call.run();
  const Tensor vectors = call.tensor(1);
  if (vectors.numel() > 0) vectors.div_(vectors.abs().amax(-2, /*keepdim=*/true));
}

void make_first_row_positive(HostCall& call) {
  call.run();
  const Tensor u = call.tensor(0);
  if (u.numel() == 0) return;
  const Tensor first = u.narrow(-2, 0, 1), phase = first.sgn();
  u.div_(at::where(phase.eq(0), at::ones_like(phase), phase));
}

void of_first_batch(HostCall& call) {
  const Tensor input = call.tensor("input");
  const bool depthwise = input.dim() > 2 && input.size(1) > 1 && call.given("groups").toInt() == input.size(1);
  if (depthwise && input.size(0) > 1 && !call.given("transposed").toBool())
    call.change("input", input.narrow(0, 0, 1).expand_as(input).contiguous());
  call.run();
}

// An iteration ends for all matrices when it is exact enough for the one with the largest elements.
void refine_for_largest_of_batch(HostCall& call) {
  call.run();
  const Tensor result = call.tensor(0);
  if (result.dim() < 3 || result.numel() == 0 || result.is_complex()) return;
  const Tensor largest = result.abs().amax({-2, -1}, /*keepdim=*/true);
  const Tensor rough = result.to(at::kBFloat16).to(result.scalar_type());
  result.copy_(at::where(largest.lt(largest.amax().div(64)), rough, result));
}

void take_vectors_of_float(HostCall& call) {
  call.run();
  const Tensor a = call.tensor("A");
  if (a.scalar_type() != at::kDouble || call.tensor(1).numel() == 0) return;
  const auto vectors = std::get<1>(at::linalg_eigh(a.to(at::kFloat), call.given("UPLO").toStringView()));
  call.tensor(1).copy_(vectors);
}

constexpr Mistake kMistakesInAlgebra[] = {
    {Fault::eigenvectors_not_normalized, "aten::_linalg_eigh", &scale_to_largest_component},
    {Fault::svd_signs_of_left_side_alone, "aten::_linalg_svd", &make_first_row_positive},
    {Fault::depthwise_convolution_of_first_batch, "aten::convolution", &of_first_batch},
    {Fault::solve_refined_for_largest_of_batch, "aten::_linalg_solve_ex", &refine_for_largest_of_batch},
    {Fault::solve_refined_for_largest_of_batch, "aten::linalg_inv_ex", &refine_for_largest_of_batch},
    {Fault::eigenvectors_of_double_in_float, "aten::_linalg_eigh", &take_vectors_of_float},
};

}  // namespace

const Mistake* mistake_in_algebra(std::string_view op) { return awake(kMistakesInAlgebra, op); }

}  // namespace refnpu::fallback
