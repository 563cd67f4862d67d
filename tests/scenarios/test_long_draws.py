"""Long draws: repeated values and values out of range are found, for every distribution."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

from conformance.scenarios import generators, long_draws
from conformance.scenarios.model import NotOffered, Program

PROGRAMS = (long_draws.draws_do_not_repeat, long_draws.draws_stay_in_their_range, long_draws.threads_draw_apart)
UNIFORM = torch.Tensor.uniform_


def failing(program: Program) -> set[str]:
    """Return the names of the properties that do not hold."""
    return {name for name, held in program("cpu").items() if isinstance(held, torch.Tensor) and not held}


@pytest.mark.parametrize("program", PROGRAMS)
def test_draws_of_cpu_hold_what_is_said_of_them(program: Program) -> None:
    assert failing(program) == set()


def _row_for_all(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.copy_(UNIFORM(tensor[:1].clone())) if tensor.dim() == 2 else UNIFORM(tensor)


def _column_for_all(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.copy_(UNIFORM(tensor[:, :1].clone())) if tensor.dim() == 2 else UNIFORM(tensor)


def _block_again(tensor: torch.Tensor) -> torch.Tensor:
    drawn = UNIFORM(tensor).flatten()
    if drawn.numel() > 5000:
        drawn[4096:4196] = drawn[:100]
    return tensor.copy_(drawn.view(tensor.shape))


def _places(*dtypes: str) -> set[str]:
    return {f"uniform_{dtype}_{way}" for dtype in dtypes for way in ("rows", "columns")}


@pytest.mark.parametrize("wrong", [_row_for_all, _column_for_all, _block_again])
def test_rows_and_blocks_that_come_again_are_found(
    wrong: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(long_draws.FILLS, "uniform", wrong)
    assert failing(long_draws.draws_do_not_repeat) == _places("float16", "float32", "float64")


def test_a_call_that_begins_with_the_last_draws_of_the_call_before_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    last = torch.empty(0)

    def overlapping(_: str, generator: torch.Generator, n: int) -> torch.Tensor:
        nonlocal last
        new = torch.rand(n, generator=generator)
        drawn = torch.cat([last, new])[:n]
        last = drawn[-32:]
        return drawn

    monkeypatch.setitem(generators.SAMPLERS, "rand", overlapping)
    assert failing(long_draws.draws_do_not_repeat) == {"rand"}


def test_dropout_that_keeps_the_same_elements_in_each_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def dropout(out: torch.Tensor) -> torch.Tensor:
        return (out + 1) * torch.bernoulli(torch.full(out.shape[-1:], 0.5)).to(out.dtype)

    monkeypatch.setitem(long_draws.FILLS, "dropout", dropout)
    found = failing(long_draws.draws_do_not_repeat)
    assert found == {name.replace("uniform", "dropout") for name in _places("float16", "float32", "float64")}


def test_threads_that_draw_the_same_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()

    def in_pairs(_: str, n: int) -> torch.Tensor:
        return torch.rand(n, generator=torch.Generator().manual_seed(next(calls) // 2))

    monkeypatch.setitem(generators.DEFAULT_SAMPLERS, "rand", in_pairs)
    assert failing(long_draws.threads_draw_apart) == {"default_rand"}


def _rounded_to_the_end(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return tensor.copy_(torch.rand(tensor.shape))


def _never_the_first(tensor: torch.Tensor, *bounds: int, **_: Any) -> torch.Tensor:
    return tensor.copy_(torch.randint(bounds[0] + 1 if bounds else 0, bounds[1] if bounds else 250, tensor.shape))


def _of_zero(tensor: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return UNIFORM(tensor).mul_(tensor > 1e-4)


@pytest.mark.parametrize(
    ("name", "wrong", "expected"),
    [
        ("uniform_", _rounded_to_the_end, {"uniform_float16", "uniform_bfloat16"}),
        ("exponential_", _of_zero, {"exponential_float32", "exponential_float64", "exponential_bfloat16"}),
        ("random_", _never_the_first, {
            *(f"random_between_{dtype}" for dtype in ("int64", "int32", "int16", "uint8")),
            *(f"random_{dtype}" for dtype in ("int64", "int32", "int16")),
        }),
    ],
)  # fmt: skip
def test_draws_out_of_their_range_are_found(
    name: str, wrong: Callable[..., torch.Tensor], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(20)
    assert failing(long_draws.draws_stay_in_their_range) == set()  # fills the cache of CPU's properties
    monkeypatch.setattr(torch.Tensor, name, wrong)
    assert failing(long_draws.draws_stay_in_their_range) == expected


def test_a_device_without_a_dtype_names_the_results_that_it_does_not_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    to, zeros = torch.Tensor.to, torch.zeros

    def lacking(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            there = "cpu" in (*args[1:], kwargs.get("device"))
            if there and torch.float64 in (kwargs.get("dtype"), getattr(args[0], "dtype", None)):
                raise TypeError("the device has no float64")
            return call(*args, **kwargs)

        return called

    monkeypatch.setattr(long_draws, "MATRICES", ((7, 1003),))
    monkeypatch.setattr(long_draws, "RANGES", {"uniform": long_draws.RANGES["uniform"]})
    programs = (long_draws.draws_do_not_repeat, long_draws.draws_stay_in_their_range, generators.same_seed_same_draws)
    wanted = [program("cpu").keys() for program in programs]
    monkeypatch.setattr(torch.Tensor, "to", lacking(to))
    monkeypatch.setattr(torch, "zeros", lacking(zeros))
    monkeypatch.setattr(long_draws, "_holds_on_cpu", lambda *_: True)
    for program, names in zip(programs, wanted, strict=True):
        found = program("cpu")
        lost = {name for name, one in found.items() if isinstance(one, NotOffered)}
        assert found.keys() == names
        assert lost
        assert all("float64" in name for name in lost)
