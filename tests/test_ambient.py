"""State that a call must not change: the watched state, and the findings of the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from conformance import ambient
from conformance.corpus.model import DeviceArg, GeneratorArg
from conformance.judging.judge import CaseResult
from conformance.ops.family import OpFacts, Random
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Check, Route
from tests.samples import sample, slot
from tests.two_sides import case_of, judge

DRAWS = "CPU's generator"
UNIFORM = OpFacts("misc", random=Random("uniform"))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    with torch.random.fork_rng(devices=()):
        yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(dtype)
    torch.set_flush_denormal(False)
    torch.set_float32_matmul_precision("highest")
    torch.use_deterministic_algorithms(False)
    torch.set_autocast_enabled("cpu", False)


CHANGES: dict[str, Callable[[], object]] = {
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the number of threads of CPU's kernels": lambda: torch.set_num_threads(torch.get_num_threads() + 1),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True),
    "the precision of float32 products": lambda: torch.set_float32_matmul_precision("medium"),
    "the keeping of subnormal numbers on CPU": lambda: torch.set_flush_denormal(True),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    DRAWS: lambda: torch.rand(1),
}


def of(mode: Callable[[], object]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return an op that changes a mode and gives the right result."""

    def op(x: torch.Tensor) -> torch.Tensor:
        mode()
        return x + 1

    return op


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def uniform(x: torch.Tensor) -> torch.Tensor:
    return torch.rand(x.shape, dtype=x.dtype)


def changed(result: CaseResult) -> list[str]:
    assert {m.check for m in result.mismatches} <= {Check.STATE}
    return [m.facts["what"] for m in result.mismatches]


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found_and_named(what: str) -> None:
    if what == "the keeping of subnormal numbers on CPU" and not torch.set_flush_denormal(False):
        pytest.skip("this processor does not flush subnormal numbers")
    assert changed(judge(plus_one, of(CHANGES[what]))) == [what]


def test_a_process_whose_state_was_changed_is_left() -> None:
    assert judge(plus_one, of(CHANGES["the default dtype"])).tainted
    assert not judge(plus_one).tainted


def test_a_change_is_found_where_the_call_raises_as_cpus_does() -> None:
    def right(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")

    def wrong(x: torch.Tensor) -> torch.Tensor:
        torch.set_default_dtype(torch.float64)
        raise ValueError("not today")

    assert changed(judge(right, wrong)) == ["the default dtype"]


def test_no_doubt_about_cpus_values_excuses_a_change() -> None:
    calls = iter(range(10_000))

    def never_twice_the_same(x: torch.Tensor) -> torch.Tensor:
        return x + next(calls)

    result = judge(never_twice_the_same, of(CHANGES["the default dtype"]))
    assert Check.STATE in {m.check for m in result.mismatches}
    assert result.tainted


def test_draws_are_watched_in_contiguous_cases_alone() -> None:
    assert changed(judge(plus_one, of(CHANGES[DRAWS]), case_of("offset1"))) == []


def test_an_op_that_draws_on_cpu_as_well_may_draw() -> None:
    drawing = of(CHANGES[DRAWS])
    assert changed(judge(drawing, drawing)) == []


def from_its_generator(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(x.shape, generator=generator)


def ignoring_its_generator(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.rand(x.shape)


def test_a_random_op_that_is_given_a_generator_draws_from_no_other() -> None:
    one = sample("hand", slot(0, "self", (2, 3)), GeneratorArg(7), DeviceArg(), dtypes=("float32",))
    (case,) = cases(CellId("misc", "hand", "float32", "contiguous"), [one])
    assert changed(judge(from_its_generator, ignoring_its_generator, case, UNIFORM)) == [DRAWS]
    assert changed(judge(from_its_generator, case=case, facts=UNIFORM)) == []


def test_draws_from_a_given_generator_are_compared_under_several_seeds() -> None:
    def squared(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return torch.rand(x.shape, generator=generator).square()

    one = sample("hand", slot(0, "self", (2, 3)), GeneratorArg(7), DeviceArg(), dtypes=("float32",))
    (case,) = cases(CellId("misc", "hand", "float32", "contiguous"), [one])
    assert [m.check for m in judge(from_its_generator, squared, case, UNIFORM).mismatches] == [Check.DISTRIBUTION]


@pytest.mark.parametrize("route", [Route.NATIVE, Route.FALLBACK, Route.COMPOSITE])
def test_an_op_that_is_random_may_draw(route: Route) -> None:
    assert changed(judge(uniform, facts=UNIFORM, route=route)) == []


def refusing(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("not today")


def refusing_late(x: torch.Tensor) -> torch.Tensor:
    torch.rand(1)
    raise ValueError("not today")


def test_a_random_op_that_draws_before_it_refuses_a_call_is_found() -> None:
    assert changed(judge(refusing, refusing_late, facts=UNIFORM)) == [DRAWS]


def test_a_random_op_that_refuses_a_call_may_draw_if_cpu_does_or_takes_it() -> None:
    assert changed(judge(refusing_late, refusing_late, facts=UNIFORM)) == []
    assert [m.check for m in judge(uniform, refusing_late, facts=UNIFORM).mismatches] == [Check.ERROR_PARITY]


def test_what_cannot_be_read_is_not_watched() -> None:
    watched = ambient.of(torch.device("meta"), generators=True)
    assert not watched.changes(watched.now(), watched.now())


def test_the_rest_is_watched_where_torch_raises_since_there_is_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise RuntimeError("Cannot access accelerator device when none is available.")  # as torch 2.6 does

    monkeypatch.setattr(torch.accelerator, "current_accelerator", none)
    watched = ambient.Ambient(torch.device("cpu"), generators=False)
    before = watched.now()
    torch.set_default_dtype(torch.float64)
    assert [change.what for change in watched.changes(before, watched.now())] == ["the default dtype"]


def test_a_device_that_cannot_be_asked_any_more_has_no_changes() -> None:
    watched = ambient.Ambient(torch.device("cpu"), generators=False)
    assert watched.changes(watched.now(), None) == watched.changes(None, watched.now()) == []
