"""Random draws: compared by seed and by distribution, never value by value."""

from __future__ import annotations

from conformance.ops.family import EXACT, TRANSCENDENTAL, Device, Dtype, Family, Random, Seeded, T, own, words

_KINDS = {
    "uniform": "rand rand_like uniform _philox_uniform",
    "normal": "randn randn_like normal normal_functional _philox_normal",
    "integers": "randint randint_like random",
    "permutation": "randperm",
    "bernoulli": "bernoulli",
    "binomial": "binomial",
    "cauchy": "cauchy",
    "dirichlet": "_sample_dirichlet",
    "exponential": "exponential",
    "gamma": "_standard_gamma",
    "geometric": "geometric",
    "log_normal": "log_normal",
    "multinomial": "multinomial",
    "poisson": "poisson",
}
_P = T((3, 4), "uniform")

FAMILY = Family(
    "random",
    words(" ".join(_KINDS.values())) + words("_standard_gamma_grad _dirichlet_grad"),
    {"tolerance": EXACT},
    but={
        **{name: {"random": Random(kind)} for kind, names in _KINDS.items() for name in words(names)},
        # Gradients with respect to the parameters draw nothing.
        **{name: {"tolerance": TRANSCENDENTAL} for name in words("_standard_gamma_grad _dirichlet_grad")},
        # CPU counts in int64, and does not report an overflow.
        "poisson": {"random": Random("poisson"), "fixed": ("self",)},
        "binomial": {"random": Random("binomial"), "fixed": ("count",)},
        **{
            f"randint_like.{overload}": {"host": ("high",)}
            for overload in words("Tensor Tensor_out Tensor_generator Tensor_generator_out")
        },
    },
    samples=(
        own("bernoulli_.Tensor", "p_of_each", T((3, 4)), _P),
        own("bernoulli.Tensor", "p_of_each", T((3, 4)), _P),
        own("bernoulli.p", "half", T((3, 4)), 0.5),
        own("binomial", "ten", T((3, 4), (10.0,) * 12), _P),
        own("poisson", "rates", T((3, 4), "positive")),
        own("random_", "whole_range", T((3, 40)), bases="float32 int64 bool"),
        own("random_", "seeded", T((3, 40)), generator=Seeded(), bases="float32 int64 bool"),
        own("random_.from", "from_to", T((3, 40)), -3, 9, bases="float32 int64"),
        own("random_.from", "positive", T((3, 40)), 3, 9, bases="float32 int64"),
        own("random_.to", "below", T((3, 40)), 9, bases="float32 int64"),
        own("random", "whole_range", T((3, 40)), bases="float32 int64 bool"),
        own("random.from", "from_to", T((3, 40)), 3, 9, bases="float32 int64"),
        own("random.to", "below", T((3, 40)), 9, bases="float32 int64"),
        own("randperm", "of_many", 40, dtype=Dtype(), device=Device(), bases="float32 int64"),
        own("randperm.generator", "of_many", 40, generator=Seeded(), dtype=Dtype(), device=Device(),
            bases="float32 int64"),
        own("randperm.out", "of_many", 40, out=T((40,), "undefined"), bases="float32 int64"),
        own("randperm.generator_out", "of_many", 40, generator=Seeded(), out=T((40,), "undefined"),
            bases="float32 int64"),
        own("_sample_dirichlet", "rows", T((5, 4), "positive")),
        own("_dirichlet_grad", "rows", T((5, 4), (0.25,) * 20), T((5, 4), "positive"), T((5, 4), (5.0,) * 20)),
        own("_standard_gamma", "shapes", T((5, 4), "positive")),
        own("_standard_gamma_grad", "shapes", T((5, 4), "positive"), T((5, 4), "positive")),
        own("rand_like", "matrix", T((3, 40)), bases="float32"),
        own("randint.out", "below", 9, (3, 40), out=T((3, 40), "undefined"), bases="float32 int64"),
        own("randint.low_out", "from_to", 3, 9, (3, 40), out=T((3, 40), "undefined"), bases="float32 int64"),
        own("rand.out", "matrix", (3, 40), out=T((3, 40), "undefined")),
        own("normal_functional", "standard", T((3, 40))),
    ),
)  # fmt: skip
