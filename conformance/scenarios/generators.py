"""The state of random generators: seeds, saved and restored states, clones, and the generators of several devices.

The draws of two devices differ, so the results are not draws: each says whether a property of the draws holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, offered, on, scenario, unless_first
from conformance.torch_versions import seeds

# Draws some numbers from a generator, or from the default one of the device if it gets None.
Sampler = Callable[[str, torch.Generator | None, int], torch.Tensor]

#: A number of draws: the chance that two streams agree in all of them is negligible.
MANY = 1000
#: Numbers drawn before a state is saved. A generator that draws in blocks of 2, 4 or 128 is then inside a block.
BEFORE = (0, 1, 2, 3, 5, 129)
#: Numbers drawn after the state is saved, by one call each.
AFTER = (1, 3, 4, 130)
SEEDS = (0, 7, 2**32 + 1, 2**63 - 1, 2**64 - 1, -1)


def _filled(name: str, *arguments: Any, dtype: torch.dtype = torch.float32) -> Sampler:
    """Return a sampler that fills a tensor in place by a method, e.g. ``uniform_``.

    The sampler raises NotOffered if the device does not have the dtype.
    """

    def draw(device: str, generator: torch.Generator | None, n: int) -> torch.Tensor:
        tensor = on(device, torch.zeros(n, dtype=dtype))
        filled: torch.Tensor = getattr(tensor, name)(*arguments, generator=generator)
        return filled

    return draw


SAMPLERS: dict[str, Sampler] = {
    "rand": lambda d, g, n: torch.rand(n, device=d, generator=g),
    "randn": lambda d, g, n: torch.randn(n, device=d, generator=g),
    "randint": lambda d, g, n: torch.randint(0, 1 << 30, (n,), device=d, generator=g),
    "randperm": lambda d, g, n: torch.randperm(n, device=d, generator=g),
    "multinomial": lambda d, g, n: torch.ones(1000, device=d).multinomial(n, True, generator=g),
    "bernoulli": lambda d, g, n: torch.full((n,), 0.5, device=d).bernoulli(generator=g),
    "poisson": lambda d, g, n: torch.poisson(torch.full((n,), 50.0, device=d), generator=g),
    "uniform_float16": _filled("uniform_", dtype=torch.float16),
    "uniform_float64": _filled("uniform_", dtype=torch.float64),
    "normal_float64": _filled("normal_", dtype=torch.float64),
    "random_": _filled("random_", dtype=torch.int64),
    "random_uint8": _filled("random_", dtype=torch.uint8),
    "bernoulli_": _filled("bernoulli_", 0.5),
    "exponential_": _filled("exponential_"),
    "geometric_": _filled("geometric_", 0.01),
    "cauchy_": _filled("cauchy_"),
    "log_normal_": _filled("log_normal_"),
}
# These always draw from the default generator.
DEFAULT_SAMPLERS: dict[str, Callable[[str, int], torch.Tensor]] = {
    "rand": lambda d, n: torch.rand(n, device=d),
    "rand_like": lambda d, n: torch.rand_like(torch.zeros(n, device=d)),
    "randperm": lambda d, n: torch.randperm(n, device=d),
    "randint": lambda d, n: torch.randint(0, 1 << 30, (n,), device=d),
    "normal": lambda d, n: torch.normal(torch.zeros(n, device=d), 1.0),
    "bernoulli": lambda d, n: torch.full((n,), 0.5, device=d).bernoulli(),
    "multinomial": lambda d, n: torch.ones(1000, device=d).multinomial(n, True),
    "poisson": lambda d, n: torch.poisson(torch.full((n,), 50.0, device=d)),
    "exponential_": lambda d, n: torch.zeros(n, device=d).exponential_(),
    "dropout": lambda d, n: torch.nn.functional.dropout(torch.ones(n, device=d)),
    "rrelu": lambda d, n: torch.nn.functional.rrelu(-torch.ones(n, device=d), training=True),
}


def generator_of(device: str) -> torch.Generator:
    """Return a new generator. Raises NotOffered if the device has none."""
    try:
        return torch.Generator(device)
    except RuntimeError as e:
        raise NotOffered(f"torch.Generator({device!r}): {first_line(e)}") from e


def _each(holds: Callable[[Sampler], bool]) -> Results:
    """Return for each sampler whether a property holds."""

    def held(draw: Sampler) -> torch.Tensor:
        return torch.tensor(holds(draw))

    return {name: offered(partial(held, draw)) for name, draw in SAMPLERS.items()}


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.equal(a.cpu(), b.cpu()))


@scenario(exact=True)
def same_seed_same_draws(device: str) -> Results:
    """Return for each sampler whether a generator with the same seed draws the same."""
    generator = generator_of(device)

    def holds(draw: Sampler) -> bool:
        first = [draw(device, generator.manual_seed(7), n).cpu() for n in (1, 3, MANY)]
        return all(_same(first[i], draw(device, generator.manual_seed(7), n)) for i, n in enumerate((1, 3, MANY)))

    return _each(holds)


@scenario(exact=True)
def other_seed_other_draws(device: str) -> Results:
    """Return for each sampler whether a generator with another seed draws something else."""
    generator = generator_of(device)

    def holds(draw: Sampler) -> bool:
        first = draw(device, generator.manual_seed(7), MANY).cpu()
        return not _same(first, draw(device, generator.manual_seed(8), MANY))

    return _each(holds)


@scenario(exact=True)
def draws_advance_the_stream(device: str) -> Results:
    """Return for each sampler whether a second draw differs from the first."""
    generator = generator_of(device).manual_seed(7)
    return _each(lambda draw: not _same(draw(device, generator, MANY).cpu(), draw(device, generator, MANY)))


@scenario(exact=True)
def state_continues_the_stream(device: str) -> Results:
    """Return for each sampler whether a restored state gives the draws that followed when it was saved."""
    generator = generator_of(device)

    def holds(draw: Sampler) -> bool:
        def drawn() -> list[torch.Tensor]:
            return [draw(device, generator, n).cpu() for n in AFTER]

        for before in BEFORE:
            generator.manual_seed(7)
            if before:
                draw(device, generator, before)
            state = generator.get_state()
            first = drawn()
            generator.set_state(state)
            if not all(map(_same, first, drawn())):
                return False
        return True

    return _each(holds)


@scenario(exact=True)
def state_is_a_copy(device: str) -> Results:
    """Return whether a saved state stays as it is while the generator goes on, and the reverse."""
    generator = generator_of(device).manual_seed(7)
    state = generator.get_state()
    kept = state.clone()
    first = torch.rand(5, device=device, generator=generator).cpu()
    moved = generator.get_state()
    results = {"unchanged_by_draws": _same(state, kept), "changes_with_draws": not _same(moved, kept)}
    generator.set_state(state)
    state.zero_()
    results["unchanged_by_writes"] = _same(first, torch.rand(5, device=device, generator=generator))
    return {name: torch.tensor(holds) for name, holds in results.items()}


@scenario(exact=True)
def states_that_are_none(device: str) -> Results:
    """Return whether what is no state of a generator is refused, and leaves the generator as it was.

    It has drawn before, and was seeded before that with another seed: else one that starts anew would be as it was.
    """
    generator = generator_of(device).manual_seed(8).manual_seed(7)
    torch.rand(5, device=device, generator=generator)
    state = generator.get_state()
    others = {
        "empty": state[:0],
        "longer": torch.cat((state, state[:1])),
        "floats": torch.zeros(len(state), dtype=torch.float32),
    }
    refused = {}
    for name, other in others.items():
        try:
            generator.set_state(other)
        except (RuntimeError, TypeError, ValueError):
            refused[name] = _same(generator.get_state(), state)
        else:
            refused[name] = False
    return {name: torch.tensor(held) for name, held in refused.items()}


@scenario(exact=True)
def clones_go_on_alone(device: str) -> Results:
    """Return whether a clone, and another generator with the state, draw what the original draws, and leave it so."""
    copies: dict[str, Callable[[torch.Generator], torch.Generator]] = {
        "clone_state": lambda generator: generator.clone_state(),
        "get_state": lambda generator: generator_of(device).set_state(generator.get_state()),
    }
    return {name: offered(partial(_copied, device, copy)) for name, copy in copies.items()}


def _copied(device: str, copy: Callable[[torch.Generator], torch.Generator]) -> torch.Tensor:
    """Return for each of ``BEFORE`` whether a copy of a generator, and then the original, continue the stream alike."""
    held = []
    for before in BEFORE:
        original, alone = (generator_of(device).manual_seed(7) for _ in range(2))
        for generator in (original, alone):
            torch.rand(before, device=device, generator=generator)
        wanted = [torch.rand(n, device=device, generator=alone).cpu() for n in AFTER]
        other = copy(original)
        copied = [torch.rand(n, device=device, generator=other).cpu() for n in AFTER]
        drawn = [torch.rand(n, device=device, generator=original).cpu() for n in AFTER]
        held.append(all(map(_same, copied, wanted)) and all(map(_same, drawn, wanted)))
    return torch.tensor(held)


@scenario(exact=True)
def generators_are_apart(device: str) -> Results:
    """Return whether draws from one generator leave another, and the default one, where they were."""
    one, other = (generator_of(device).manual_seed(7) for _ in range(2))
    drawn = [[torch.rand(n, device=device, generator=g).cpu() for g in (one, other)] for n in AFTER]
    results = {"two_generators": torch.tensor([_same(*pair) for pair in drawn])}
    _must_be_seedable(device)
    torch.manual_seed(7)
    wanted = torch.rand(5, device=device).cpu()
    torch.manual_seed(7)
    torch.rand(3, device=device, generator=one)
    results["default_generator"] = torch.tensor(_same(torch.rand(5, device=device), wanted))
    results["new_generator"] = torch.tensor(_same(*(_drawn_by_new(device, seed) for seed in (7, 8))))
    return {**results}


def _drawn_by_new(device: str, seed: int) -> torch.Tensor:
    """Seed the default generator and draw from it. Return the draws of a new generator, and its seed."""
    torch.manual_seed(seed)
    torch.rand(3, device=device)
    new = torch.Generator(device)
    return torch.cat((torch.rand(5, device=device, generator=new).cpu(), torch.tensor([float(new.initial_seed())])))


@scenario(exact=True)
def generator_of_the_host(device: str) -> Results:
    """Return for each sampler whether it refuses a generator of CPU, or draws from it what CPU draws."""

    def holds(draw: Sampler) -> bool:
        wanted = draw("cpu", torch.Generator().manual_seed(3), MANY)
        try:
            drawn = draw(device, torch.Generator().manual_seed(3), MANY)
        except (RuntimeError, AssertionError, TypeError, ValueError):
            return True
        return _same(drawn, wanted)

    return _each(holds)


@scenario(exact=True)
def seed_is_kept(device: str) -> Results:
    """Return whether a generator has the seed that it was given, chose, or had when its state was saved."""
    generator = generator_of(device)
    kept = []
    for seed in SEEDS:
        generator.manual_seed(seed)
        torch.rand(3, device=device, generator=generator)
        kept.append(generator.initial_seed() == torch.Generator().manual_seed(seed).initial_seed())
    chosen = generator.seed()
    results = {"given": torch.tensor(kept), "chosen": torch.tensor(generator.initial_seed() == chosen)}
    state = generator.manual_seed(11).get_state()
    restored = generator.manual_seed(12).set_state(state)
    results["restored"] = torch.tensor(restored.initial_seed() == 11)
    # Seeds have 64 random bits, so two equal ones are not a coincidence.
    return {**results, "chosen_again": torch.tensor(len({chosen, generator.seed(), generator.seed()}))}


@scenario(exact=True)
def manual_seed_reaches_the_device(device: str) -> Results:
    """Return for ops without a generator whether ``torch.manual_seed`` repeats their draws, and another does not."""
    _must_be_seedable(device)

    def holds(draw: Callable[[str, int], torch.Tensor]) -> torch.Tensor:
        drawn = []
        for seed in (7, 7, 8):
            torch.manual_seed(seed)
            drawn.append([draw(device, n).cpu() for n in (1, 3, MANY)])
        first, again, other = drawn
        return torch.tensor([all(map(_same, first, again)), not _same(first[-1], other[-1])])

    return {name: offered(partial(holds, draw)) for name, draw in DEFAULT_SAMPLERS.items()}


@scenario(exact=True)
def threads_share_the_default_generator(device: str) -> Results:
    """Return whether a seed reaches the draws of another thread, and whether these advance the stream of this one."""
    _must_be_seedable(device)

    def drawn(in_thread: bool) -> list[torch.Tensor]:
        torch.manual_seed(7)
        found: list[torch.Tensor] = []

        def draw() -> None:
            found.append(torch.rand(MANY, device=device).cpu())

        if in_thread:
            thread = Thread(target=draw)
            thread.start()
            thread.join()
        else:
            draw()
        return [*found, torch.rand(MANY, device=device).cpu()]

    here, there = drawn(in_thread=False), drawn(in_thread=True)
    return {
        "seeded": torch.tensor(_same(here[0], there[0])),
        "advanced": torch.tensor(_same(here[1], there[1])),
    }


@scenario(exact=True)
def default_state_continues_the_stream(device: str) -> Results:
    """Return whether the device module's saved state repeats the draws of the default generator."""
    get, set_ = (_function(device, name) for name in ("get_rng_state", "set_rng_state"))
    of = unless_first(device)

    def held(draw: Callable[[str, int], torch.Tensor], before: int) -> bool:
        if before:
            draw(device, before)
        state = get(*of)
        first = [draw(device, n).cpu() for n in AFTER]
        set_(state, *of)
        return all(map(_same, first, [draw(device, n) for n in AFTER]))

    def all_held(draw: Callable[[str, int], torch.Tensor]) -> torch.Tensor:
        return torch.tensor([held(draw, n) for n in BEFORE])

    return {name: offered(partial(all_held, draw)) for name, draw in DEFAULT_SAMPLERS.items()}


@scenario(exact=True)
def fork_rng_restores_the_state(device: str) -> Results:
    """Return whether draws within ``fork_rng`` leave the stream outside as it was, also after an error."""
    _must_be_seedable(device)
    for name in ("get_rng_state", "set_rng_state"):
        _function(device, name)
    kind, index = _place(device)
    settings: dict[str, Any] = {"devices": [index], "device_type": kind} if kind != "cpu" else {"devices": ()}
    try:
        with torch.random.fork_rng(**settings):
            pass
    except TypeError as e:  # the functions of the device's module take no device
        raise NotOffered(f"torch.{kind}.get_rng_state of a device: {first_line(e)}") from e

    def left(before: int, error: bool) -> bool:
        wanted = _draws_after(device, before, None)
        return _same(_draws_after(device, before, torch.random.fork_rng(**settings), error), wanted)

    return {
        "left": torch.tensor([left(n, False) for n in BEFORE]),
        "left_by_an_error": torch.tensor([left(n, True) for n in BEFORE]),
    }


def _draws_after(device: str, before: int, forked: Any, error: bool = False) -> torch.Tensor:
    """Seed the default generator, draw ``before`` numbers, and draw others within ``forked``. Return the next draws."""
    torch.manual_seed(7)
    torch.rand(before, device=device)
    if forked is not None:
        with _raising(error), forked:
            torch.manual_seed(8)
            torch.rand(3, device=device)
            if error:
                raise _Left
    return torch.rand(5, device=device).cpu()


class _Left(Exception):
    """An error that leaves a context."""


@contextmanager
def _raising(error: bool) -> Iterator[None]:
    """Suppress :class:`_Left` in the block if an error is expected."""
    try:
        yield
    except _Left:
        if not error:
            raise


@scenario(exact=True)
def devices_have_their_own(device: str) -> Results:
    """Return for ops without a generator whether each device has a stream of its own that ``torch.manual_seed`` starts.

    So draws on one device change nothing on another one, and are repeated by the seed.
    """
    _must_be_seedable(device)
    devices = _devices(device)

    def holds(draw: Callable[[str, int], torch.Tensor]) -> torch.Tensor:
        def drawn(which: list[str]) -> list[torch.Tensor]:
            torch.manual_seed(7)
            return [draw(d, n).cpu() for n in AFTER for d in which]

        alone = [drawn([d]) for d in devices]
        together = drawn(devices)
        unmoved = [all(map(_same, one, together[i :: len(devices)])) for i, one in enumerate(alone)]
        seeded = [all(map(_same, one, drawn([d]))) for one, d in zip(alone, devices, strict=True)]
        return torch.tensor([all(unmoved), all(seeded)])

    return {name: offered(partial(holds, draw)) for name, draw in DEFAULT_SAMPLERS.items()}


def _place(device: str) -> tuple[str, int]:
    """Return a device's type and its index."""
    found = torch.device(device)
    return found.type, found.index or 0


def _devices(device: str) -> list[str]:
    """Return the first two devices of this type, or CPU alone. Raises NotOffered if there is only one accelerator."""
    kind, _ = _place(device)
    if kind == "cpu":
        return [device]
    count = int(_function(device, "device_count")())
    if count < 2:
        raise NotOffered("a second device")
    return [f"{kind}:{i}" for i in range(2)]


def _must_be_seedable(device: str) -> None:
    """Raise NotOffered if ``torch.manual_seed`` does not reach the device."""
    kind, _ = _place(device)
    if not seeds(kind):
        raise NotOffered(f"torch.{kind}.manual_seed_all, by which torch.manual_seed reaches the device")


def _function(device: str, name: str) -> Callable[..., Any]:
    """Return a function of the device's module, for CPU of torch. Raises NotOffered if there is no such function."""
    kind, _ = _place(device)
    found = getattr(torch if kind == "cpu" else getattr(torch, kind, None), name, None)
    if not callable(found):
        raise NotOffered(f"torch.{kind}.{name}")
    return found  # type: ignore[no-any-return]  # from a device's module
