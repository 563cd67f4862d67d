// Random fills: torch's checks of the arguments, and one draw from the device's generator for each launch.
#include "kernels/random.h"

#include <ATen/native/DistributionTemplates.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <mutex>

#include "aten/index_nest.h"
#include "aten/plan.h"
#include "aten/register.h"
#include "refnpu/fault.h"
#include "refnpu/launch.h"
#include "runtime/generator.h"
#include "runtime/version.h"

namespace refnpu::randoms {
namespace {

using MaybeGenerator = std::optional<at::Generator>;
namespace templates = at::native::templates;

Draw draw(const MaybeGenerator& given, const at::Tensor& out) {
  if (given && fault(Fault::given_generator_moves_default)) draw_seed(std::nullopt, out.device().index());
  const MaybeGenerator generator = fault(Fault::generator_argument_ignored) ? MaybeGenerator() : given;
  const bool copies = out.scalar_type() == at::kDouble && fault(Fault::double_fills_copy_generator);
  const uint64_t seed = (copies ? peek_seed : draw_seed)(generator, out.device().index());
  return {fault(Fault::seed_ignored_native) ? 0 : seed, 0};
}

// The fault of a draw from the generator of another device.
void advance_host_generator() {
  const at::Generator& host = at::detail::getDefaultCPUGenerator();
  auto* engine = at::check_generator<at::CPUGeneratorImpl>(host);
  std::lock_guard lock(engine->mutex_);
  engine->random64();
}

void require_floating(const char* op, const at::Tensor& tensor) {
  check_has_kernel(at::isFloatingType(tensor.scalar_type()), op, tensor.scalar_type());
}

// Torch's templates check arguments, then call an object of a class like these. `G` is a type they pass along.
struct Unused {};

template <class G>
struct Uniform {
  void operator()(at::TensorIteratorBase& iter, double from, double to, const MaybeGenerator& generator) {
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    launch("uniform_", [=] { fill_uniform(out, bits, from, to); });
    if (fault(Fault::uniform_advances_host_generator)) advance_host_generator();
  }
};

// The fault of the second of a pair of numbers, which is kept for the next call, whatever happens to the generator.
void take_spare(const at::Tensor& self, uint64_t seed, double mean, double std) {
  thread_local double spare = 0;
  thread_local bool kept = false;
  if (self.numel() == 0) return;
  if (kept) self.as_strided({}, {}, self.storage_offset()).fill_(mean + std * spare);
  kept = kept ? self.numel() % 2 == 0 : self.numel() % 2 == 1;
  const double radius = std::sqrt(-2.0 * std::log((double(seed >> 32) + 1) * 0x1p-32));
  if (kept) spare = radius * std::cos(6.283185307179586 * double(uint32_t(seed)) * 0x1p-32);
}

template <class G>
struct Normal {
  void operator()(at::Tensor& self, double mean, double std, const MaybeGenerator& generator) {
    require_floating("normal_", self);
    const View out = view_of(self);
    const bool skips = std == 0 && fault(Fault::normal_without_spread_draws_nothing);
    const Draw bits = skips ? Draw{} : draw(generator, self);
    launch("normal_", [=] { fill_normal(out, bits, mean, std); });
    if (fault(Fault::normal_spare_survives_seed)) take_spare(self, bits.seed, mean, std);
  }
};

template <class G>
struct LogNormal {
  void operator()(at::TensorIteratorBase& iter, double mean, double std, const MaybeGenerator& generator) {
    require_floating("log_normal_", iter.tensor(0));
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    launch("log_normal_", [=] { fill_log_normal(out, bits, mean, std); });
  }
};

template <class G>
struct Exponential {
  void operator()(at::TensorIteratorBase& iter, double lambda, const MaybeGenerator& generator) {
    TORCH_CHECK(at::isFloatingType(iter.dtype()),
                "Exponential distribution is a continuous probability distribution. "
                "dtype must be a floating point but you specified ",
                iter.dtype());
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    const double rate = fault(Fault::exponential_rate_taken_for_mean) ? 1.0 / lambda : lambda;
    launch("exponential_", [=] { fill_exponential(out, bits, rate); });
  }
};

template <class G>
struct Geometric {
  void operator()(at::TensorIteratorBase& iter, double p, const MaybeGenerator& generator) {
    const at::ScalarType type = iter.dtype();
    check_has_kernel(!at::isComplexType(type) && type != at::kBool, "geometric_", type);
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    launch("geometric_", [=] { fill_geometric(out, bits, p); });
  }
};

template <class G>
struct Cauchy {
  void operator()(at::TensorIteratorBase& iter, double median, double sigma, const MaybeGenerator& generator) {
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    launch("cauchy_", [=] { fill_cauchy(out, bits, median, sigma); });
  }
};

template <class G>
struct Natural {
  void operator()(at::TensorIteratorBase& iter, const MaybeGenerator& generator) {
    check_has_kernel(!at::isComplexType(iter.dtype()), "random_", iter.dtype());
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    launch("random_", [=] { fill_natural(out, bits); });
  }
};

template <class G>
struct Integers {
  void operator()(at::TensorIteratorBase& iter, uint64_t range, int64_t base, const MaybeGenerator& generator) {
    const View out = view_of(iter.tensor(0));
    const Draw bits = draw(generator, iter.tensor(0));
    const uint64_t drawn = range + (range > 0 && fault(Fault::random_includes_end) ? 1 : 0);
    launch("random_", [=] { fill_integers(out, bits, drawn, base); });
  }
  void operator()(at::TensorIteratorBase& iter, const MaybeGenerator& generator) { (*this)(iter, 0, 0, generator); }
};

template <class G>
struct Bernoulli {
  void operator()(at::Tensor& self, double p, const MaybeGenerator& generator) {
    const View out = view_of(self);
    const Draw bits = draw(generator, self);
    launch("bernoulli_", [=] { fill_bernoulli(out, bits, p); });
  }
  void operator()(at::Tensor& self, const at::Tensor& p, const MaybeGenerator& generator) {
    require_same_device("bernoulli_", {self, p});
    require_floating("bernoulli_", p);
    const auto expanded = at::expand_inplace(self, p, "bernoulli_");
    const bool unchecked = p.numel() < self.numel() && fault(Fault::bernoulli_broadcast_chances_unchecked);
    TORCH_CHECK(unchecked || expanded->ge(0).logical_and(expanded->le(1)).all().item<bool>(),
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    const View out = view_of(self), chances = view_of(*expanded);
    const Draw bits = draw(generator, self);
    launch("bernoulli_", [=] { fill_bernoulli(out, chances, bits); });
  }
};

at::Tensor& uniform_(at::Tensor& self, double from, double to, MaybeGenerator generator) {
  if (from > to && fault(Fault::refused_draw_moves_generator)) draw_seed(generator, self.device().index());
  return templates::uniform_impl_<Uniform, Unused>(self, from, to, std::move(generator));
}
at::Tensor& normal_(at::Tensor& self, double mean, double std, MaybeGenerator generator) {
  if (std < 0 && fault(Fault::refused_draw_moves_generator)) draw_seed(generator, self.device().index());
  return templates::normal_impl_<Normal, Unused>(self, mean, std, std::move(generator));
}
at::Tensor& log_normal_(at::Tensor& self, double mean, double std, MaybeGenerator generator) {
  return templates::log_normal_impl_<LogNormal, Unused>(self, mean, std, std::move(generator));
}
at::Tensor& exponential_(at::Tensor& self, double lambda, MaybeGenerator generator) {
  return templates::exponential_impl_<Exponential, Unused>(self, lambda, std::move(generator));
}
at::Tensor& geometric_(at::Tensor& self, double p, MaybeGenerator generator) {
  return templates::geometric_impl_<Geometric, Unused>(self, p, std::move(generator));
}
at::Tensor& cauchy_(at::Tensor& self, double median, double sigma, MaybeGenerator generator) {
  return templates::cauchy_impl_<Cauchy, Unused>(self, median, sigma, std::move(generator));
}
at::Tensor& random_(at::Tensor& self, MaybeGenerator generator) {
  return templates::random_impl<Natural, Unused>(self, std::move(generator));
}
at::Tensor& random_from_(at::Tensor& self, int64_t from, std::optional<int64_t> to, MaybeGenerator generator) {
  return templates::random_from_to_impl<Integers, Unused>(self, from, to, std::move(generator));
}
at::Tensor& random_to_(at::Tensor& self, int64_t to, MaybeGenerator generator) {
  return random_from_(self, 0, to, std::move(generator));
}
at::Tensor& bernoulli_float_(at::Tensor& self, double p, MaybeGenerator generator) {
  return templates::bernoulli_impl_<Bernoulli, Unused>(self, p, std::move(generator));
}
at::Tensor& bernoulli_tensor_(at::Tensor& self, const at::Tensor& p, MaybeGenerator generator) {
  return templates::bernoulli_impl_<Bernoulli, Unused>(self, p, std::move(generator));
}
at::Tensor& bernoulli_out(const at::Tensor& self, MaybeGenerator generator, at::Tensor& out) {
  return templates::bernoulli_out_impl<Bernoulli, Unused>(out, self, std::move(generator));
}

// The six forms of normal() with a tensor among its parameters.
template <class Mean, class Std>
at::Tensor normal(Mean mean, Std std, MaybeGenerator generator) {
  if (std::is_same_v<Mean, Std> && fault(Fault::normal_of_tensors_ignores_generator)) generator.reset();
  return templates::normal_impl<Normal, Unused>(mean, std, std::move(generator));
}
template <class Mean, class Std>
at::Tensor& normal_out(Mean mean, Std std, MaybeGenerator generator, at::Tensor& out) {
  return templates::normal_out_impl<Normal, Unused>(out, mean, std, std::move(generator));
}

using T = const at::Tensor&;

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  NativeLibrary m(library);
  m.impl("uniform_", &uniform_);
  m.impl("normal_", &normal_);
  m.impl("log_normal_", &log_normal_);
  m.impl("exponential_", &exponential_);
  m.impl("geometric_", &geometric_);
  m.impl("cauchy_", &cauchy_);
  m.impl("random_", &random_);
  m.impl("random_.from", &random_from_);
  m.impl("random_.to", &random_to_);
  m.impl("bernoulli_.float", &bernoulli_float_);
  m.impl("bernoulli_.Tensor", &bernoulli_tensor_);
  m.impl("bernoulli.out", &bernoulli_out);
  m.impl("normal.Tensor_float", &normal<T, double>);
  m.impl("normal.float_Tensor", &normal<double, T>);
  m.impl("normal.Tensor_Tensor", &normal<T, T>);
  m.impl("normal.Tensor_float_out", &normal_out<T, double>);
  m.impl("normal.float_Tensor_out", &normal_out<double, T>);
  m.impl("normal.Tensor_Tensor_out", &normal_out<T, T>);
}

}  // namespace refnpu::randoms
