"""Properties of long draws that hold for any numbers.

Cells compare the distribution of an element's draws with CPU's. They do not find a row that repeats the row before it,
or a call that repeats the draws of the call before it, shifted by some numbers: the distribution is right.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Barrier

import torch

from conformance.scenarios.generators import DEFAULT_SAMPLERS, SAMPLERS, generator_of
from conformance.scenarios.model import NotOffered, Results, holds, name_of, offered, on, scenario

#: Numbers drawn by successive calls of one sampler: fewer than a generator's block has, and more than many grids have.
CALLS = (1, 3, 1000, 2, 4097, 128, 70_001, 5)
#: Numbers of rows and of columns that no block of a power of two divides, and one matrix transposed.
MATRICES = ((7, 1003), (301, 67), (67, 301))
#: Lengths of runs of draws, powers of two: the chance that a run repeats is negligible. Samplers and dtypes of few
#: values need longer runs, by name.
RUN = 8
LONGER_RUNS = {"bernoulli": 128, "bernoulli_": 128, "dropout": 128, "poisson": 32, "geometric_": 32, "random_uint8": 32,
               "uniform_float16": 16, "multinomial": 16, "float16": 16}  # fmt: skip
#: Threads that draw at the same time, calls of each thread, and numbers of each call: more than any run has.
THREADS, CALLS_OF_A_THREAD, LEAST = 4, 40, 260
#: Samplers that draw from a generator of their own or from the default one.
SHARED = ("rand", "randint", "bernoulli", "multinomial")
#: A number of draws: almost every call has a draw beyond a bound that one draw in 16,384 exceeds.
DRAWS = 1 << 18
FILLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "uniform": lambda out: out.uniform_(),
    "normal": lambda out: out.normal_(),
    "exponential": lambda out: out.exponential_(),
    "cauchy": lambda out: out.cauchy_(),
    "log_normal": lambda out: out.log_normal_(),
    "dropout": lambda out: torch.nn.functional.dropout(out + 1),
}


@scenario(exact=True, slow=True)
def draws_do_not_repeat(device: str) -> Results:
    """Return for each sampler whether no run of its draws comes again, in later calls and in other rows."""

    def by_calls(name: str, draw: Callable[[int], torch.Tensor]) -> torch.Tensor:
        torch.manual_seed(20)
        calls = [draw(n).cpu() for n in CALLS]
        return torch.tensor(not _has_repeats(torch.cat(calls), LONGER_RUNS.get(name, RUN)))

    def by_rows(name: str, dtype: torch.dtype, transposed: bool) -> torch.Tensor:
        torch.manual_seed(20)
        drawn = []
        for shape in MATRICES:
            out = on(device, torch.zeros(shape[::-1] if transposed else shape, dtype=dtype))
            drawn.append(FILLS[name](out.t() if transposed else out).cpu().flatten())
        run = max(LONGER_RUNS.get(of, RUN) for of in (name, name_of(dtype)))
        return torch.tensor(not _has_repeats(torch.cat(drawn), run))

    results: Results = {}
    for name, draw in SAMPLERS.items():
        results[name] = offered(partial(by_calls, name, partial(draw, device, generator_of(device))))
    for name, sample in DEFAULT_SAMPLERS.items():
        results[f"default_{name}"] = offered(partial(by_calls, name, partial(sample, device)))
    for name in FILLS:
        for dtype in (torch.float32, torch.float64, torch.float16):
            for transposed in (False, True):
                key = f"{name}_{name_of(dtype)}_{'columns' if transposed else 'rows'}"
                results[key] = offered(partial(by_rows, name, dtype, transposed))
    return results


@scenario(exact=True, slow=True)
def threads_draw_apart(device: str) -> Results:
    """Return for each sampler whether threads that draw from one generator at the same time draw other numbers."""

    def apart(name: str, draw: Callable[[int], torch.Tensor]) -> torch.Tensor:
        torch.manual_seed(20)
        begin = Barrier(THREADS)

        def drawn(_: int) -> torch.Tensor:
            begin.wait()
            return torch.cat([draw(LEAST).cpu() for _ in range(CALLS_OF_A_THREAD)])

        with ThreadPoolExecutor(THREADS) as threads:
            draws = torch.cat(list(threads.map(drawn, range(THREADS))))
        return torch.tensor(not _has_repeats(draws, LONGER_RUNS.get(name, RUN)))

    samplers: dict[str, Callable[[int], torch.Tensor]] = {}
    for name in SHARED:
        samplers[name] = partial(SAMPLERS[name], device, generator_of(device))
        samplers[f"default_{name}"] = partial(DEFAULT_SAMPLERS[name], device)
    return {name: offered(partial(apart, name.removeprefix("default_"), draw)) for name, draw in samplers.items()}


def _has_repeats(draws: torch.Tensor, run: int) -> bool:
    """Return whether ``run`` draws in a row occur twice. ``run``: a power of two. ``draws``: [n], on CPU."""
    hashes = draws.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[draws.element_size()]).long()
    length = 1
    while length < run:  # each pass hashes twice as many draws
        later = hashes[length:] ^ hashes[length:] >> 29
        hashes = hashes[:-length] * 6364136223846793005 + later * 2862933555777941757
        length *= 2
    return int(hashes.unique().numel()) < len(hashes)


@scenario(exact=True, slow=True)
def draws_stay_in_their_range(device: str) -> Results:
    """Return for each distribution whether many draws keep to the range that it has."""
    return {
        f"{name}_{name_of(dtype)}": offered(partial(_holds, name, device, dtype))
        for name in RANGES
        for dtype in (INTEGERS if name.startswith("random") else FLOATS)
        if _holds_on_cpu(name, dtype)
    }


@cache
def _holds_on_cpu(name: str, dtype: torch.dtype) -> bool:
    """Return whether CPU's draws keep to the range: not each op does so in each dtype."""
    try:
        return bool(_holds(name, "cpu", dtype))
    except (NotImplementedError, RuntimeError):
        return False


def _holds(name: str, device: str, dtype: torch.dtype) -> torch.Tensor:
    """Return whether draws keep to their range. Raises NotOffered if the device does not have the dtype."""
    if not holds(device, dtype):
        raise NotOffered(name_of(dtype))
    torch.manual_seed(20)
    return torch.tensor(RANGES[name](device, dtype))


FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def _all(condition: torch.Tensor) -> bool:
    return bool(condition.all())


def _made(device: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(DRAWS, dtype=dtype, device=device)


def _uniform(device: str, dtype: torch.dtype) -> bool:
    draws = _made(device, dtype).uniform_().cpu()
    return _all(draws >= 0) and _all(draws < 1)


def _bernoulli(device: str, dtype: torch.dtype) -> bool:
    never, always = (_made(device, dtype).bernoulli_(p).cpu() for p in (0.0, 1.0))
    rarely = _made(device, dtype).bernoulli_(0.001).cpu()
    return _all(never == 0) and _all(always == 1) and _all((rarely == 0) | (rarely == 1)) and bool(rarely.any())


def _exponential(device: str, dtype: torch.dtype) -> bool:
    draws = _made(device, dtype).exponential_().cpu()
    return _all(draws > 0) and _all(draws.isfinite())


def _geometric(device: str, dtype: torch.dtype) -> bool:
    draws = _made(device, dtype).geometric_(0.5).cpu()
    return _all(draws >= 1) and _all(draws == draws.round()) and bool((draws == 1).any())


def _normal(device: str, dtype: torch.dtype) -> bool:
    draws = _made(device, dtype).normal_().cpu()
    return _all(draws.isfinite()) and bool((draws.abs() > 4).any()) and _all(draws.abs() < 9)


def _poisson(device: str, dtype: torch.dtype) -> bool:
    rates = torch.tensor([0, 2.5, 80, 1000], dtype=dtype).repeat(DRAWS // 4)
    draws = torch.poisson(rates.to(device)).cpu()
    return _all(draws[::4] == 0) and _all(draws >= 0) and _all(draws == draws.round())


def _binomial(device: str, dtype: torch.dtype) -> bool:
    counts = torch.tensor([0, 3, 100, 1000, 5], dtype=dtype).repeat(DRAWS // 16)
    chances = torch.tensor([0.5, 0.25, 0.5, 0.0, 1.0], dtype=dtype).repeat(DRAWS // 16)
    draws = torch.binomial(counts.to(device), chances.to(device)).cpu()
    ends = _all(draws[3::5] == 0) and _all(draws[4::5] == 5)
    return ends and _all(draws >= 0) and _all(draws <= counts) and _all(draws == draws.round())


def _multinomial(device: str, dtype: torch.dtype) -> bool:
    weights = torch.tensor([0, 1, 0, 2, 0.001, 0], dtype=dtype).repeat(50).to(device)
    taken = weights.multinomial(DRAWS, replacement=True).cpu()
    apart = weights.multinomial(150, replacement=False).cpu()
    return _all(weights.cpu()[taken] > 0) and apart.unique().numel() == 150 and _all(weights.cpu()[apart] > 0)


def _dropout(device: str, dtype: torch.dtype) -> bool:
    ones = torch.ones(DRAWS, dtype=dtype, device=device)
    half = torch.nn.functional.dropout(ones, 0.5).cpu()
    none, all_of_them = (torch.nn.functional.dropout(ones, p).cpu() for p in (0.0, 1.0))
    return _all((half == 0) | (half == 2)) and _all(none == 1) and _all(all_of_them == 0)


def _rrelu(device: str, dtype: torch.dtype) -> bool:
    slopes = -torch.nn.functional.rrelu(-torch.ones(DRAWS, dtype=dtype, device=device), 0.25, 0.5, training=True).cpu()
    return _all(slopes >= 0.25) and _all(slopes <= 0.5)


def _random(device: str, dtype: torch.dtype) -> bool:
    draws = _made(device, dtype).random_().cpu()
    return _all(draws >= 0) and bool((draws > torch.iinfo(dtype).max // 2).any())


def _random_between(device: str, dtype: torch.dtype) -> bool:
    least = max(-3, torch.iinfo(dtype).min)
    return bool(_made(device, dtype).random_(least, 4).cpu().unique().tolist() == [*range(least, 4)])


def _random_order(device: str, dtype: torch.dtype) -> bool:
    count = min(70_001, torch.iinfo(dtype).max)
    order = torch.randperm(count, dtype=dtype, device=device).cpu().long()
    return torch.equal(order.sort().values, torch.arange(count)) and not torch.equal(order, torch.arange(count))


RANGES: dict[str, Callable[[str, torch.dtype], bool]] = {
    "uniform": _uniform, "bernoulli": _bernoulli, "exponential": _exponential, "geometric": _geometric,
    "normal": _normal, "poisson": _poisson, "binomial": _binomial, "multinomial": _multinomial, "dropout": _dropout,
    "rrelu": _rrelu, "random": _random, "random_between": _random_between, "random_order": _random_order,
}  # fmt: skip
