"""``torch.distributions`` with parameters on the device: densities, their gradients, draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import distributions as d
from torch.distributions import Distribution

from conformance.scenarios.model import Results, offered, on, scenario

_DRAWN = 20_000  # draws whose mean is checked
_FAR = 6.0  # standard errors that a mean may be off by; exceeded once in 5e8 times

_A, _B = [0.5, 1.25, 3.0], [1.5, 0.75, 2.0]
_PROBABILITIES = [0.25, 0.5, 0.875]
_MATRIX = [[2.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.5]]

#: Each distribution, its parameters, and a value of its support.
MADE: dict[str, tuple[Callable[..., Distribution], tuple[Any, ...], Any]] = {
    "bernoulli": (lambda p: d.Bernoulli(probs=p), (_PROBABILITIES,), [0.0, 1.0, 1.0]),
    "bernoulli_of_logits": (lambda p: d.Bernoulli(logits=p), (_A,), [0.0, 1.0, 1.0]),
    "beta": (d.Beta, (_A, _B), [0.25, 0.5, 0.75]),
    "binomial": (lambda p: d.Binomial(7, probs=p), (_PROBABILITIES,), [0.0, 3.0, 7.0]),
    "categorical": (lambda p: d.Categorical(probs=p), (_MATRIX,), [0.0, 1.0, 2.0]),
    "categorical_of_logits": (lambda p: d.Categorical(logits=p), (_MATRIX,), [2.0, 1.0, 0.0]),
    "cauchy": (d.Cauchy, (_A, _B), [-1.0, 0.5, 4.0]),
    "chi2": (d.Chi2, (_A,), _B),
    "dirichlet": (d.Dirichlet, (_A,), [0.25, 0.5, 0.25]),
    "exponential": (d.Exponential, (_A,), _B),
    "fisher_snedecor": (d.FisherSnedecor, (_A, _B), _B),
    "gamma": (d.Gamma, (_A, _B), _B),
    "geometric": (lambda p: d.Geometric(probs=p), (_PROBABILITIES,), [0.0, 2.0, 5.0]),
    "gumbel": (d.Gumbel, (_A, _B), [-1.0, 0.5, 4.0]),
    "half_cauchy": (d.HalfCauchy, (_A,), _B),
    "half_normal": (d.HalfNormal, (_A,), _B),
    "kumaraswamy": (d.Kumaraswamy, (_A, _B), [0.25, 0.5, 0.75]),
    "laplace": (d.Laplace, (_A, _B), [-1.0, 0.5, 4.0]),
    "log_normal": (d.LogNormal, (_A, _B), _B),
    "mixture": (
        lambda p, a, b: d.MixtureSameFamily(d.Categorical(probs=p), d.Normal(a, b)), (_PROBABILITIES, _A, _B), 0.75,
    ),
    "multinomial": (lambda p: d.Multinomial(4, probs=p), (_PROBABILITIES,), [1.0, 2.0, 1.0]),
    "multivariate_normal": (lambda a, m: d.MultivariateNormal(a, covariance_matrix=m), (_A, _MATRIX), _B),
    "negative_binomial": (lambda a, p: d.NegativeBinomial(a, probs=p), (_A, _PROBABILITIES), [0.0, 2.0, 5.0]),
    "normal": (d.Normal, (_A, _B), [-1.0, 0.5, 4.0]),
    "of_independent_rows": (lambda a, b: d.Independent(d.Normal(a, b), 1), (_A, _B), [-1.0, 0.5, 4.0]),
    "one_hot": (lambda p: d.OneHotCategorical(probs=p), (_PROBABILITIES,), [0.0, 1.0, 0.0]),
    "pareto": (d.Pareto, (_A, _B), [1.0, 2.0, 5.0]),
    "poisson": (d.Poisson, (_A,), [0.0, 2.0, 5.0]),
    "relaxed_bernoulli": (
        lambda t, p: d.RelaxedBernoulli(t, probs=p), (0.75, _PROBABILITIES), [0.25, 0.5, 0.75],
    ),
    "student_t": (d.StudentT, (_B, _A, _B), [-1.0, 0.5, 4.0]),
    "transformed": (
        lambda a, b: d.TransformedDistribution(d.Normal(a, b), [d.SigmoidTransform(), d.AffineTransform(1.0, 2.0)]),
        (_A, _B),
        [1.25, 2.0, 2.5],
    ),
    "uniform": (lambda a, b: d.Uniform(a, a + b), (_A, _B), [0.75, 1.5, 4.0]),
    "von_mises": (d.VonMises, (_A, _B), [-1.0, 0.5, 3.0]),
    "weibull": (d.Weibull, (_A, _B), _B),
}  # fmt: skip

#: Properties of a distribution that are compared besides the density of a value.
ASKED: dict[str, Callable[[Distribution, torch.Tensor], torch.Tensor]] = {
    "mean": lambda asked, _: asked.mean,
    "variance": lambda asked, _: asked.variance,
    "entropy": lambda asked, _: asked.entropy(),
    "cdf": lambda asked, value: asked.cdf(value),
    "inverse_cdf": lambda asked, value: asked.icdf(value.new_tensor(_PROBABILITIES)),
}


def _made(device: str, name: str) -> tuple[Distribution, list[torch.Tensor], torch.Tensor]:
    """Return a distribution, its parameters, which need gradients, and a value of its support."""
    make, given, value = MADE[name]
    parameters = [on(device, torch.tensor(numbers)).requires_grad_() for numbers in given]
    return make(*parameters), parameters, on(device, torch.tensor(value))


@cache
def _answers(name: str) -> tuple[str, ...]:
    """Return the names of the properties that torch can compute for a distribution on CPU."""
    distribution, _, value = _made("cpu", name)
    answers = {asked: offered(partial(ask, distribution, value)) for asked, ask in ASKED.items()}
    return tuple(asked for asked, answer in answers.items() if isinstance(answer, torch.Tensor))


def _asked(device: str, name: str, asked: str) -> torch.Tensor:
    distribution, _, value = _made(device, name)
    return ASKED[asked](distribution, value).detach()


def _density(device: str, name: str) -> torch.Tensor:
    """Return the logarithm of the density at a value, and the gradients of the parameters."""
    distribution, parameters, value = _made(device, name)
    density = distribution.log_prob(value)
    density.sum().backward()
    gradients = [p.grad.flatten() for p in parameters if p.grad is not None]
    return torch.cat([density.detach().flatten(), *gradients])


@scenario(slow=True, area="training")
def densities(device: str) -> Results:
    """A distribution whose parameters are on the device has CPU's densities, gradients, moments and quantiles."""
    calls = {f"{name}.density": partial(_density, device, name) for name in MADE}
    for name in MADE:
        calls |= {f"{name}.{asked}": partial(_asked, device, name, asked) for asked in _answers(name)}
    return {name: offered(call) for name, call in calls.items()}


def _drawn(device: str, name: str) -> torch.Tensor:
    """Return whether draws are on the device and in the support, repeat by a seed alone, and have the mean."""
    distribution, _, value = _made(device, name)

    def draw() -> torch.Tensor:
        return distribution.sample((_DRAWN,))

    torch.manual_seed(0)
    first, second = draw(), draw()
    torch.manual_seed(0)
    again = draw()
    facts = [
        first.device == value.device,
        bool(distribution.support.check(first).all()),
        bool((first == again).all()),
        not bool((first == second).all()),
        "mean" not in _answers(name) or _has_its_mean(distribution, first),
    ]
    return torch.tensor(facts)


def _has_its_mean(distribution: Distribution, drawn: torch.Tensor) -> bool:
    """Return whether draws have the mean of a distribution, where its mean and its standard deviation are finite."""
    mean, spread = distribution.mean.detach().cpu(), distribution.variance.detach().cpu().sqrt()
    off = (drawn.cpu().double().mean(0) - mean).abs()
    known = mean.isfinite() & spread.isfinite() & (not isinstance(distribution, d.VonMises))  # its mean is an angle
    return bool((off <= _FAR * spread / _DRAWN**0.5)[known].all())


@scenario(exact=True, slow=True, area="random")
def draws_of_distributions(device: str) -> Results:
    """Draws of a distribution are on the device, in its support, repeatable by a seed, and have its mean."""
    return {name: offered(partial(_drawn, device, name)) for name in MADE}
