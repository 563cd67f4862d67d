// Sampling from tensors of parameters: multinomial, randperm, dropout, Poisson, binomial, gamma, Dirichlet.
#include <ATen/ExpandUtils.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/binomial.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "kernels/misread.h"
#include "kernels/random.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "runtime/generator.h"
#include "runtime/version.h"

namespace refnpu::sampling {
namespace {

using MaybeGenerator = std::optional<at::Generator>;

Draw draw(const MaybeGenerator& generator, const at::Tensor& out) {
  const bool stays = fault(Fault::sampling_leaves_generator);
  const bool first = !generator && fault(Fault::sampling_from_first_device);
  const c10::DeviceIndex device = first ? 0 : out.device().index();
  const uint64_t seed = (stays ? peek_seed : draw_seed)(generator, device);
  return {fault(Fault::seed_ignored_native) ? 0 : seed, 0};
}

void require_floating(const char* op, const at::Tensor& tensor) {
  check_has_kernel(at::isFloatingType(tensor.scalar_type()), op, tensor.scalar_type());
}

View as_matrix(const at::Tensor& tensor) { return view_of(tensor.dim() == 1 ? tensor.unsqueeze(0) : tensor); }

void require_weights(const View& weights, const at::Tensor& like) {
  if (fault(Fault::multinomial_weights_unchecked)) return;
  const at::Tensor cells = make_cells(like, 1);
  int64_t* verdict = cells.mutable_data_ptr<int64_t>();
  launch("check_weights", [=] { check_weights(weights, verdict); });
  const auto found = static_cast<Weights>(read_cells(cells)[0]);
  TORCH_CHECK(found != Weights::negative_or_not_finite,
              "probability tensor contains either `inf`, `nan` or element < 0");
  TORCH_CHECK(found != Weights::zero_sum, "invalid multinomial distribution (sum of probabilities <= 0)");
}

at::Tensor& multinomial_out(const at::Tensor& self, int64_t count, bool replacement, MaybeGenerator generator,
                            at::Tensor& out) {
  require_same_device("multinomial", {self, out});
  TORCH_CHECK(self.dim() > 0 && self.dim() <= 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(out.scalar_type() == at::kLong, "multinomial expects Long tensor out, got: ", out.scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  TORCH_CHECK(replacement || count <= categories,
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TORCH_CHECK(categories <= (int64_t(1) << 24), "number of categories cannot exceed 2^24");
  if (self.dim() == 1)
    out.resize_({count});
  else
    out.resize_({self.size(0), count});
  if (out.numel() == 0) return out;
  const View weights = as_matrix(self), to = as_matrix(out);
  require_weights(weights, self);
  const Draw bits = draw(generator, out);
  View read = weights;
  const bool misread = !replacement && fault(Fault::multinomial_strided_weights_as_dense);
  if (misread) read.strides[1] = std::min(read.strides[1], size_of(read.dtype));
  launch("multinomial", [=] { sample_multinomial(read, to, replacement, bits); });
  return out;
}

at::Tensor multinomial(const at::Tensor& self, int64_t count, bool replacement, MaybeGenerator generator) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return multinomial_out(self, count, replacement, std::move(generator), out);
}

at::Tensor& randperm_out(int64_t n, MaybeGenerator generator, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  at::native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  const View to = fault(Fault::randperm_out_as_dense) ? taken_for_dense(view_of(out)) : view_of(out);
  const Draw bits = draw(generator, out);
  launch("randperm", [=] { random_permutation(to, bits); });
  return out;
}

// The fault of a mask that is drawn once for a shape and a probability.
at::Tensor mask_before(const at::Tensor& drawn, double kept) {
  thread_local at::Tensor last;
  thread_local double last_kept = -1;
  const bool fits = last.defined() && last.sizes() == drawn.sizes() && last.strides() == drawn.strides() &&
                    last.device() == drawn.device() && last_kept == kept;
  if (!fits) last = drawn;
  last_kept = kept;
  return last.clone();
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& self, double p, std::optional<bool> train) {
  if (self.numel() == 0) return {self, at::empty_like(self, self.options())};
  if (!train.value_or(true) && fault(Fault::dropout_returns_its_input))
    return {self, at::ones_like(self, self.options().dtype(at::kBool))};
  if (!train.value_or(true)) return {self.clone(), at::ones_like(self, self.options().dtype(at::kBool))};
  const double kept = 1.0 - p;
  const bool divides = kept != 0.0 || fault(Fault::dropout_of_all_divides_by_zero);
  const double scale = divides ? 1.0 / kept : 0.0;
  at::Tensor mask = at::empty_like(self, self.options().dtype(at::kBool));
  mask.bernoulli_(kept);
  const int64_t tail = self.numel() % 4;
  if (self.numel() > 1024 && tail > 0 && mask.is_non_overlapping_and_dense() && fault(Fault::dropout_keeps_tail))
    mask.as_strided({tail}, {1}, self.numel() - tail).fill_(true);
  if (fault(Fault::dropout_keeps_mask)) mask = mask_before(mask, kept);
  at::Tensor out = self.mul(mask);
  const bool unscaled = self.requires_grad() && fault(Fault::dropout_scales_without_gradient);
  if (!unscaled && !fault(Fault::dropout_not_scaled)) out.mul_(scale);
  if (fault(Fault::dropout_mask_drawn_again)) mask = at::empty_like(mask).bernoulli_(kept);
  if (self.requires_grad() && fault(Fault::dropout_saves_another_mask)) mask = mask.logical_not();
  return {out, mask};
}

at::Tensor native_dropout_backward(const at::Tensor& grad, const at::Tensor& mask, double scale) {
  return grad.mul(mask).mul(scale);
}

at::Tensor poisson(const at::Tensor& self, MaybeGenerator generator) {
  require_floating("poisson", self);
  at::Tensor out = at::zeros(self.sizes(), self.options());
  if (out.numel() == 0) return out;
  TORCH_CHECK(fault(Fault::poisson_of_negative_rate) || self.ge(0).all().item<bool>(),
              "invalid Poisson rate, expected rate to be non-negative");
  const View rate = view_of(self), to = view_of(out);
  const Draw bits = draw(generator, out);
  launch("poisson", [=] { sample_poisson(to, rate, bits); });
  if (fault(Fault::poisson_of_large_rate_is_normal)) {
    const at::Tensor large = self.gt(64);
    if (large.any().item<bool>()) {
      const at::Tensor spread = at::zeros(self.sizes(), self.options()).normal_(0, 1, generator).mul_(self.sqrt());
      out.copy_(at::where(large, spread.add_(self).clamp_min_(0), out));
    }
  }
  return out;
}

at::Tensor binomial(const at::Tensor& count, const at::Tensor& prob, MaybeGenerator generator) {
  require_floating("binomial", count);
  if (count.scalar_type() != prob.scalar_type())  // CPU raises, and the type of the error depends on torch's version
    at::binomial(at::empty({0}, count.scalar_type()), at::empty({0}, prob.scalar_type()));
  TORCH_CHECK(count.scalar_type() == prob.scalar_type(), "Found dtype ", prob.scalar_type(), " but expected ",
              count.scalar_type());
  require_same_device("binomial", {count, prob});
  const auto [counts, chances] = at::expand_outplace(count, prob, "binomial");
  at::Tensor out;
  if (counts->sizes() == count.sizes()) {
    out = at::zeros(count.sizes(), count.options());
  } else {  // as on CPU, the result of arguments that broadcast has its dimensions in their order
    auto broadcast =
        at::TensorIteratorConfig().add_owned_output(out).add_const_input(count).add_const_input(prob).build();
    out = broadcast.output().zero_();
  }
  const View n = view_of(*counts), p = view_of(*chances), to = view_of(out);
  const Draw bits = draw(generator, out);
  launch("binomial", [=] { sample_binomial(to, n, p, bits); });
  return out;
}

at::Tensor standard_gamma(const at::Tensor& alpha, MaybeGenerator generator) {
  require_floating("_standard_gamma", alpha);
  at::Tensor out = at::zeros(alpha.sizes(), alpha.options());
  const View shape = view_of(alpha), to = view_of(out);
  const Draw bits = draw(generator, out);
  launch("_standard_gamma", [=] { sample_gamma(to, shape, bits); });
  return out;
}

at::Tensor sample_dirichlet(const at::Tensor& alpha, MaybeGenerator generator) {
  const at::Tensor gamma = standard_gamma(alpha, std::move(generator));
  return gamma.div(gamma.sum(-1, /*keepdim=*/true));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("multinomial", &multinomial);
  m.impl("multinomial.out", &multinomial_out);
  m.impl("randperm.generator_out", &randperm_out);
  m.impl("native_dropout", &native_dropout);
  m.impl("native_dropout_backward", &native_dropout_backward);
  m.impl("poisson", &poisson);
  m.impl("binomial", &binomial);
  m.impl("_standard_gamma", &standard_gamma);
  m.impl("_sample_dirichlet", &sample_dirichlet);
}

}  // namespace refnpu::sampling
