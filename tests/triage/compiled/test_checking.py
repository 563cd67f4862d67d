"""Compiled graphs against the same graphs run op by op, with compilers that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from conformance.triage.compiled.checking import Backend, Checks, Graph
from conformance.triage.compiled.model import OWN, Kind, Wrong

Made = Callable[..., Any]
Compiler = Callable[[torch.fx.GraphModule, list[Any]], Made]

pytestmark = pytest.mark.forked


class Stopped(Exception):
    """The exception that takes the place of the end of a process."""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def first(compiler: Compiler, function: Made, *args: Any) -> tuple[Wrong | None, Checks]:
    """Compile and call a function. Return the first difference, if any, and the checks."""
    found: list[Wrong] = []

    def stop(wrong: Wrong, graph: Graph | None, arguments: Sequence[Any]) -> None:
        found.append(wrong)
        raise Stopped

    checks = Checks(OWN, stop)
    torch.compiler.reset()  # Dynamo reuses the code of equal backends
    try:
        torch.compile(function, backend=Backend(checks, compiler, "mine"))(*args)
    except Exception:
        if not found:
            raise
    return (found[0] if found else None), checks


def eager(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
    forward: Made = graph.forward
    return forward


def changed(change: Callable[[Any], Any]) -> Compiler:
    """Return a compiler whose code changes the first result."""

    def compiler(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
        def call(*args: Any) -> Any:
            result, *rest = graph(*args)
            return (change(result), *rest)

        return call

    return compiler


def one_wrong(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x.view(-1)[-1] += 0.5
    return x


def double(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def test_equal_code_is_found_equal_and_each_call_is_compared() -> None:
    wrong, checks = first(eager, double, torch.randn(5))
    assert wrong is None
    assert (checks.calls, len(checks.graphs), list(checks.names)) == (1, 1, [])


def test_a_wrong_last_element_is_found() -> None:
    wrong, _ = first(changed(one_wrong), double, torch.randn(5))
    assert wrong is not None
    assert (wrong.kind, wrong.subject, wrong.graph, wrong.call) == (Kind.VALUES, "result 0", 0, 0)
    assert wrong.message.startswith("1 of 5 values differ")


def test_a_wrong_gradient_is_found_where_results_are_right() -> None:
    def rescaled(x: torch.Tensor) -> torch.Tensor:
        return x + (x * 0.5 - x.detach() * 0.5)

    wrong, _ = first(changed(rescaled), double, torch.randn(5, requires_grad=True))
    assert wrong is not None
    assert (wrong.subject, wrong.phase) == ("gradient of argument 0", "backward")


def test_an_argument_that_is_not_written_is_found() -> None:
    def adds(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)

    def forgets(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
        return lambda *args: graph(*(a.clone() for a in args))

    wrong, _ = first(forgets, adds, torch.randn(5))
    assert wrong is not None
    assert wrong.subject == "argument 0 afterwards"


def test_code_that_ignores_the_offset_of_an_argument_is_found() -> None:
    """The suite's copies keep the offsets of the arguments; torch's own accuracy check moves them to offset 0."""

    def from_the_start(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
        return lambda *args: graph(*(a.as_strided(a.shape, a.stride(), 0) for a in args))

    assert first(from_the_start, double, torch.randn(5))[0] is None
    wrong, _ = first(from_the_start, double, torch.randn(9)[4:])
    assert wrong is not None
    assert wrong.kind is Kind.VALUES


def test_rounding_of_fused_code_is_no_difference() -> None:
    def in_double(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
        def call(*args: Any) -> Any:
            return tuple(r.float() for r in graph(*(a.double() for a in args)))

        return call

    def cancels(x: torch.Tensor) -> torch.Tensor:
        return ((x + 1e4) - 1e4) * 3

    assert first(in_double, cancels, torch.rand(100))[0] is None


def test_an_error_of_the_compiler_is_found_with_its_type() -> None:
    def refuses(graph: torch.fx.GraphModule, _: list[Any]) -> Made:
        raise NotImplementedError("no lowering of sin\nmore")

    wrong, _ = first(refuses, double, torch.randn(5))
    assert wrong is not None
    assert (wrong.kind, wrong.error, wrong.phase) == (Kind.RAISED, "NotImplementedError", "compile")
    assert wrong.message == "no lowering of sin"


def test_an_error_of_the_code_that_the_graph_raises_too_is_not_compared() -> None:
    def raises(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("as the program does")

    refuses: Any = torch.library.custom_op("conformance_test::refuses", raises, mutates_args=())
    refuses.register_fake(torch.empty_like)
    with pytest.raises(ValueError, match="as the program does"):
        first(eager, refuses, torch.randn(3))


def test_draws_are_compared_where_the_compiler_draws_as_eager_code_does() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand(5)

    state = torch.get_rng_state()
    wrong, _ = first(eager, noisy, torch.zeros(5))
    assert wrong is None
    torch.set_rng_state(state)
    expected = torch.rand(5)
    torch.set_rng_state(state)
    torch.compiler.reset()
    checks = Checks(OWN, lambda *_: None)
    actual = torch.compile(noisy, backend=Backend(checks, eager, "mine"))(torch.zeros(5))
    assert torch.equal(actual, expected), "the comparison itself must draw nothing"
    assert first(changed(one_wrong), noisy, torch.zeros(5))[0] is not None
