"""Features of autograd besides gradients: a device on which a feature is wrong differs from CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.scenarios import graphs
from conformance.scenarios.model import Program, Results
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # they run `backward`

PROGRAMS = (
    graphs.saved_tensors_elsewhere,
    graphs.anomalies,
    graphs.added_gradients,
    graphs.hooks,
    graphs.functions_of_their_own,
    graphs.writes_after_saving,
    graphs.graphs_are_freed,
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same_results_again(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_saved_tensors_that_come_back_otherwise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.autograd.graph.saved_tensors_hooks

    def lossy(pack: Callable[[torch.Tensor], Any], unpack: Callable[[Any], torch.Tensor]) -> Any:
        return was(pack, lambda kept: unpack(kept).flip(-1))

    found = different(
        graphs.saved_tensors_elsewhere,
        lambda: monkeypatch.setattr(torch.autograd.graph, "saved_tensors_hooks", lossy),
    )
    assert found == {"packed"}


def test_saved_tensors_that_the_host_changes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy() -> Any:
        return torch.autograd.graph.saved_tensors_hooks(torch.Tensor.clone, lambda kept: kept.flip(-1))

    found = different(
        graphs.saved_tensors_elsewhere, lambda: monkeypatch.setattr(torch.autograd.graph, "save_on_cpu", lossy)
    )
    assert found == {"on_the_host", "pinned"}


def test_an_anomaly_that_is_overlooked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.autograd.set_detect_anomaly

    def overlooking(mode: bool, check_nan: bool) -> Any:
        return was(mode, check_nan=not check_nan)

    def change() -> None:
        monkeypatch.setattr(torch.autograd, "set_detect_anomaly", overlooking)

    assert different(graphs.anomalies, change) == {"of_nan"}


def test_gradients_that_replace_those_that_are_there_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.backward

    def replacing(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        for leaf in _leaves_of(tensor):
            if leaf.grad is not None:
                leaf.grad.zero_()
        was(tensor, *args, **kwargs)

    found = different(graphs.added_gradients, lambda: monkeypatch.setattr(torch.Tensor, "backward", replacing))
    assert {"twice", "into_a_dense_one", "into_a_transposed_one", "into_every_second", "of_expanded"} <= found
    assert "into_none" not in found


def test_gradients_in_another_tensor_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.backward

    def copying(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        was(tensor, *args, **kwargs)
        for leaf in _leaves_of(tensor):
            leaf.grad = None if leaf.grad is None else leaf.grad.clone()

    monkeypatch.setattr(torch.Tensor, "backward", copying)
    with pytest.raises(AssertionError, match="another tensor"):
        graphs.added_gradients("cpu")


def _leaves_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the leaves of the graph behind a tensor."""
    found, waiting, seen = [], [tensor.grad_fn], set()
    while waiting:
        node: Any = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [after for after, _ in node.next_functions]
    return found


def test_hooks_whose_results_are_ignored_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.register_hook

    def ignoring(tensor: torch.Tensor, hook: Callable[[torch.Tensor], Any]) -> Any:
        def see(gradient: torch.Tensor) -> None:
            hook(gradient)

        return was(tensor, see)

    found = different(graphs.hooks, lambda: monkeypatch.setattr(torch.Tensor, "register_hook", ignoring))
    assert {"gradients", "accumulated", "of_a_leaf"} <= found
    assert "of_a_result" not in found


def test_a_function_whose_written_argument_is_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.mul_

    def half(tensor: torch.Tensor, other: Any) -> torch.Tensor:
        was(tensor[:1], other)
        return tensor

    found = different(graphs.functions_of_their_own, lambda: monkeypatch.setattr(torch.Tensor, "mul_", half))
    assert "of_all" in found


def test_every_result_is_a_tensor_on_cpu() -> None:
    results: Results = {}
    for program in PROGRAMS:
        results |= program("cpu")
    assert all(isinstance(one, torch.Tensor) for one in results.values())


def test_writes_that_autograd_does_not_notice_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.add_

    def unnoticed(tensor: torch.Tensor, other: Any) -> torch.Tensor:
        was(tensor.data, other)
        return tensor

    def change() -> None:
        monkeypatch.setattr(torch.Tensor, "add_", unnoticed)

    assert different(graphs.writes_after_saving, change) == {"add_"}


def test_reads_that_count_as_writes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    was = torch.Tensor.add

    def written(tensor: torch.Tensor, other: Any) -> torch.Tensor:
        return was(tensor.mul_(1), other)

    def change() -> None:
        monkeypatch.setattr(torch.Tensor, "add", written)

    assert different(graphs.writes_after_saving, change) == {"only_read"}


class Keeping(torch.autograd.Function):
    """An exponential that keeps its argument itself, without ``save_for_backward``, and never frees it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.kept = x.detach()
        return x.detach().exp()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * ctx.kept.exp()


def test_a_graph_that_keeps_what_it_saved_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = graphs.graphs_are_freed("cpu")
    assert all(bool(x) for x in right.values())
    monkeypatch.setitem(graphs.NOT_LINEAR, "exp", Keeping.apply)
    found = graphs.graphs_are_freed("cpu")
    assert [name for name, x in found.items() if not bool(x)] == ["exp"]
