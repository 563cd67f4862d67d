// The faults of decompositions and convolutions that the fallback serves.
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include <string_view>

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

constexpr Mistake kMistakesInAlgebra[] = {
    {Fault::eigenvectors_not_normalized, "aten::_linalg_eigh", &scale_to_largest_component},
    {Fault::svd_signs_of_left_side_alone, "aten::_linalg_svd", &make_first_row_positive},
    {Fault::depthwise_convolution_of_first_batch, "aten::convolution", &of_first_batch},
};

}  // namespace

const Mistake* mistake_in_algebra(std::string_view op) { return awake(kMistakesInAlgebra, op); }

}  // namespace refnpu::fallback
