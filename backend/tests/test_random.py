"""Random fills: seeded and reproducible, of the right range and distribution, with CPU's argument checks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from against_cpu import ALL, FLOATS, LAYOUTS, outcome, values

N = 4000
FILLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "uniform": lambda t: t.uniform_(),
    "normal": lambda t: t.normal_(),
    "log_normal": lambda t: t.log_normal_(),
    "exponential": lambda t: t.exponential_(),
    "geometric": lambda t: t.geometric_(0.3),
    "cauchy": lambda t: t.cauchy_(),
    "random": lambda t: t.random_(),
    "random_to": lambda t: t.random_(100),
    "random_from": lambda t: t.random_(2, 50),
    "bernoulli": lambda t: t.bernoulli_(0.4),
    "bernoulli_tensor": lambda t: t.bernoulli_(torch.full((), 0.4, device=t.device)),
    "bernoulli_out": lambda t: torch.bernoulli(torch.full(t.shape, 0.4, device=t.device)),
    "multinomial": lambda t: torch.multinomial(torch.ones(N, device=t.device), N, True),
    "randperm": lambda t: torch.randperm(N, device=t.device),
    "dropout": lambda t: torch.native_dropout(torch.ones(N, device=t.device), 0.5, True)[0],
    "poisson": lambda t: torch.poisson(torch.full((N,), 3.0, device=t.device)),
    "binomial": lambda t: torch.binomial(
        torch.full((N,), 9.0, device=t.device), torch.full((N,), 0.3, device=t.device)
    ),
    "gamma": lambda t: torch.ops.aten._standard_gamma(torch.full((N,), 2.0, device=t.device)),
    "dirichlet": lambda t: torch.ops.aten._sample_dirichlet(torch.full((N, 2), 2.0, device=t.device)),
    "normal_tensor": lambda t: torch.normal(torch.zeros(N, device=t.device), torch.ones(N, device=t.device)),
    "normal_mean": lambda t: torch.normal(torch.zeros(N, device=t.device), 1.0),
    "normal_std": lambda t: torch.normal(0.0, torch.ones(N, device=t.device)),
}


def drawn(name: str, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.npu.manual_seed_all(seed)
    return FILLS[name](torch.empty(N, dtype=dtype, device="npu")).cpu()


@pytest.mark.parametrize("name", FILLS)
def test_a_seed_determines_every_random_fill(name: str) -> None:
    first, again, other = drawn(name, 3), drawn(name, 3), drawn(name, 4)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("name", FILLS)
def test_successive_draws_differ_and_a_generator_state_repeats_them(name: str) -> None:
    torch.npu.manual_seed_all(0)
    empty = torch.empty(N, device="npu")
    first = FILLS[name](empty).clone()
    assert not torch.equal(first, FILLS[name](empty))
    generator = torch.Generator("npu").manual_seed(7)
    state = generator.get_state()
    first = torch.rand(5, generator=generator, device="npu")
    generator.set_state(state)
    assert torch.equal(first, torch.rand(5, generator=generator, device="npu"))


# The mean and variance that N draws should have.
MOMENTS = {
    "uniform": (1 / 2, 1 / 12),
    "normal": (0.0, 1.0),
    "exponential": (1.0, 1.0),
    "geometric": (1 / 0.3, 0.7 / 0.09),
    "random_to": (49.5, 833.25),
    "random_from": (25.5, 191.9),
    "bernoulli": (0.4, 0.24),
    "bernoulli_tensor": (0.4, 0.24),
    "bernoulli_out": (0.4, 0.24),
    "poisson": (3.0, 3.0),
    "binomial": (2.7, 1.89),
    "gamma": (2.0, 2.0),
    "dropout": (1.0, 1.0),
    "normal_tensor": (0.0, 1.0),
    "normal_mean": (0.0, 1.0),
    "normal_std": (0.0, 1.0),
}


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_random_fills_have_the_expected_mean_and_variance(name: str, dtype: torch.dtype) -> None:
    mean, variance = MOMENTS[name]
    draws = drawn(name, 11, dtype).double()
    assert draws.mean().item() == pytest.approx(mean, abs=6 * (variance / N) ** 0.5 + 0.01 * abs(mean))
    assert draws.var().item() == pytest.approx(variance, rel=0.25)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_draws_stay_inside_their_range(dtype: torch.dtype) -> None:
    draws = torch.empty(200_000, dtype=dtype, device="npu")
    for low, high in ((0.0, 1.0), (-3.0, -1.0), (1.0, 1.001), (5.0, 5.0)):
        draws.uniform_(low, high)
        assert draws.min() >= low
        assert (draws < high).all() or low == high or draws.unique().tolist() == [low]
    assert (draws.exponential_() > 0).all()
    assert (draws.geometric_(0.9) >= 1).all()


def test_an_exponential_draw_is_never_rounded_to_zero() -> None:
    torch.npu.manual_seed_all(57)  # its draw 306,593 is below half of float16's smallest number
    draws = torch.empty(310_000, dtype=torch.float16, device="npu").exponential_().cpu()
    assert draws[306_593] == 2.0**-24


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_random_integers_cover_the_range_of_the_dtype(dtype: torch.dtype) -> None:
    if dtype.is_complex:
        pytest.skip("random_ has no complex dtypes")
    draws = torch.empty(N, dtype=dtype, device="npu").random_().cpu()
    if dtype == torch.bool:
        top = 1.0
    else:
        top = 2.0 / torch.finfo(dtype).eps if dtype.is_floating_point else float(torch.iinfo(dtype).max)
    assert draws.min() >= 0
    assert draws.double().max().item() <= top
    assert draws.double().mean().item() == pytest.approx(top / 2, rel=0.1)
    small = torch.empty(N, dtype=dtype, device="npu").random_(0, 2).cpu()
    assert sorted(set(small.tolist())) == [0, 1]
    everything = torch.empty(N, dtype=torch.int64, device="npu").random_(-(2**63), None)
    assert (everything < 0).any()
    assert (everything > 0).any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_draws_do_not_depend_on_the_layout(layout: str) -> None:
    torch.npu.manual_seed_all(5)
    expected = torch.empty(3, 4, device="npu").normal_()
    target = LAYOUTS[layout](values(3, 4)).to("npu")
    torch.npu.manual_seed_all(5)
    assert torch.equal(target.normal_(), expected)


def test_a_state_is_never_taken_in_the_middle_of_an_op() -> None:
    x, generator = torch.rand(1_000_000, device="npu").neg(), torch.Generator("npu")
    draw = partial(torch.ops.aten.rrelu_with_noise, x, x.clone(), 0.1, 0.3, True, generator)
    states = [generator.get_state()]
    thread = threading.Thread(target=draw)
    thread.start()
    while thread.is_alive():
        states.append(generator.get_state())
    states.append(generator.get_state())
    assert {state.numpy().tobytes() for state in states} == {states[0].numpy().tobytes(), states[-1].numpy().tobytes()}


def test_multinomial_follows_the_weights() -> None:
    weights = torch.tensor([[0.0, 1.0, 3.0], [2.0, 2.0, 0.0]], device="npu")
    draws = torch.multinomial(weights, N, replacement=True).cpu()
    assert draws[0].bincount(minlength=3).tolist()[0] == 0
    assert (draws[0] == 2).double().mean().item() == pytest.approx(0.75, abs=0.04)
    assert (draws[1] == 0).double().mean().item() == pytest.approx(0.5, abs=0.04)
    orders = torch.multinomial(weights[:1].expand(N, 3), 3).cpu()
    assert (orders.sort(1).values == torch.arange(3)).all()
    assert (orders[:, 0] == 2).double().mean().item() == pytest.approx(0.75, abs=0.04)
    assert (orders[:, 2] == 0).all()
    assert torch.multinomial(weights.t()[1], 2).shape == (2,)


def test_permutations_are_complete_and_dropout_is_scaled() -> None:
    for dtype in (torch.int64, torch.int32, torch.float32):
        order = torch.randperm(50, dtype=dtype, device="npu").cpu()
        assert torch.equal(order.sort().values, torch.arange(50, dtype=dtype))
    kept, mask = torch.native_dropout(torch.ones(N, device="npu"), 0.25, True)
    assert torch.allclose(kept.cpu(), mask.cpu() / 0.75)
    assert torch.equal(torch.ops.aten.native_dropout_backward(torch.ones_like(kept), mask, 2.0).cpu(), mask.cpu() * 2.0)
    assert (torch.native_dropout(torch.ones(9, device="npu"), 1.0, True)[0] == 0).all()
    kept, mask = torch.native_dropout(values(9).to("npu"), 0.5, False)
    assert mask.all()
    assert torch.equal(kept.cpu(), values(9))


WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "uniform_order": (torch.Tensor.uniform_, (values(3), 2, 1)),
    "uniform_dtype": (torch.Tensor.uniform_, (values(3).int(),)),
    "uniform_range": (torch.Tensor.uniform_, (values(3).half(), 0, 1e9)),
    "uniform_overlap": (torch.Tensor.uniform_, (values(3).expand(2, 3),)),
    "normal_std": (torch.Tensor.normal_, (values(3), 0, -1)),
    "normal_dtype": (torch.Tensor.normal_, (values(3).int(),)),
    "normal_tensor_std": (torch.normal, (values(3), values(3) - 5)),
    "normal_complex_std": (torch.normal, (values(3), values(3).to(torch.complex64))),
    "log_normal": (torch.Tensor.log_normal_, (values(3), 0, 0)),
    "exponential": (torch.Tensor.exponential_, (values(3), 0)),
    "exponential_dtype": (torch.Tensor.exponential_, (values(3).int(),)),
    "geometric": (torch.Tensor.geometric_, (values(3), 1.0)),
    "geometric_dtype": (torch.Tensor.geometric_, (values(3).bool(), 0.5)),
    "cauchy": (torch.Tensor.cauchy_, (values(3), 0, 0)),
    "cauchy_dtype": (torch.Tensor.cauchy_, (values(3).int(),)),
    "random_order": (torch.Tensor.random_, (values(3), 5, 5)),
    "random_range": (torch.Tensor.random_, (values(3, dtype=torch.int8), 0, 1000)),
    "random_complex": (torch.Tensor.random_, (values(3).to(torch.complex64),)),
    "bernoulli": (torch.Tensor.bernoulli_, (values(3), 1.5)),
    "bernoulli_tensor": (torch.Tensor.bernoulli_, (values(3), torch.full((3,), 2.0))),
    "bernoulli_shape": (torch.Tensor.bernoulli_, (values(3), torch.full((4,), 0.5))),
    "bernoulli_dtype": (torch.Tensor.bernoulli_, (values(3), torch.ones(3).int())),
    "multinomial_dim": (torch.multinomial, (torch.ones(1, 1, 1), 1)),
    "multinomial_dtype": (torch.multinomial, (torch.ones(3).int(), 1)),
    "multinomial_none": (torch.multinomial, (torch.ones(3), 0)),
    "multinomial_many": (torch.multinomial, (torch.ones(3), 4)),
    "multinomial_negative": (torch.multinomial, (torch.tensor([1.0, -1.0]), 1)),
    "multinomial_nan": (torch.multinomial, (torch.tensor([1.0, float("nan")]), 3, True)),
    "multinomial_zero": (torch.multinomial, (torch.zeros(3), 2)),
    "poisson": (torch.poisson, (torch.tensor([-1.0]),)),
    "poisson_dtype": (torch.poisson, (torch.ones(3).int(),)),
    "binomial_dtype": (torch.binomial, (torch.ones(3), torch.ones(3).double())),
    "dropout_dtype": (torch.native_dropout, (torch.ones(3).int(), 0.5, True)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_of_random_ops_raise_as_on_cpu(name: str) -> None:
    call, args = WRONG[name]
    _, expected, _ = outcome(call, "cpu", args, {})
    _, raised, _ = outcome(call, "npu", args, {})
    assert type(raised) is type(expected), f"CPU: {expected!r}\nnpu: {raised!r}"


@pytest.mark.parametrize("name", FILLS)
def test_random_results_have_the_shape_and_strides_of_cpu(name: str) -> None:
    for shape in ((N,), (0,), (2, 3)):
        expected, got = FILLS[name](torch.empty(shape)), FILLS[name](torch.empty(shape, device="npu"))
        assert (got.dtype, got.shape, got.stride()) == (expected.dtype, expected.shape, expected.stride())


@pytest.mark.parametrize("rate", [1e12, 1e30, float("inf")])
def test_counts_of_large_rates_are_drawn_in_no_time(rate: float) -> None:
    rates = torch.full((1000,), rate, dtype=torch.float64)
    drawn = torch.poisson(rates.to("npu")).cpu()
    if rate == float("inf"):
        assert bool(drawn.isinf().all())
    else:
        assert abs(float(drawn.mean()) / rate - 1) < 1e-5
        assert bool((drawn == drawn.round()).all())
    count = torch.binomial(
        rates.clamp(max=1e30).to("npu"), torch.full((1000,), 0.25, dtype=torch.float64, device="npu")
    )
    assert abs(float(count.mean().cpu()) / min(rate, 1e30) - 0.25) < 1e-4


def test_counts_of_one_number_of_trials_have_the_shape_of_the_probabilities() -> None:
    found = torch.binomial(torch.tensor(10.0, device="npu"), torch.full((3, 4), 0.5, device="npu"))
    assert found.shape == (3, 4)
    assert bool(((found >= 0) & (found <= 10)).all())
