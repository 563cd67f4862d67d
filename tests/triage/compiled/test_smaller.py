"""Smaller graphs, smaller arguments, and the script of a graph."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.triage.compiled import dump, script, smaller
from conformance.triage.compiled.dump import Dump
from conformance.triage.compiled.twins import copies

pytestmark = pytest.mark.forked


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a = torch.relu(x) + 1
        b = torch.sigmoid(y) @ a
        return (b.tanh(), a)


def dumped(*args: Any, model: torch.nn.Module | None = None) -> Dump:
    return Dump(
        dump.copied(torch.fx.symbolic_trace(model or Model())), args, "eager", modes={"grad": True, "autocast": {}}
    )


def calls(given: Dump) -> list[str]:
    return [n.name for n in given.graph.graph.nodes if n.op.startswith("call")]


def test_the_minifier_keeps_the_calls_that_the_failure_needs() -> None:
    whole = dumped(torch.randn(4, 3), torch.randn(5, 4))
    small, stopped = smaller.minified(whole, lambda d: any("sigmoid" in name for name in calls(d)))
    assert stopped == ""
    assert calls(small) == ["sigmoid"]
    assert len(small.args) == 1


def test_a_minifier_that_stops_says_why_and_keeps_the_graph() -> None:
    whole = dumped(torch.randn(4, 3), torch.randn(5, 4))
    small, stopped = smaller.minified(whole, lambda d: False)
    assert small is whole
    assert stopped.startswith("torch's minifier stopped")


def test_shrinking_keeps_what_the_failure_needs_of_the_arguments() -> None:
    x = torch.randn(40, 6)[1:].requires_grad_()

    def fails(given: Dump) -> bool:
        """Return whether there are two rows, as if code were wrong from the second row on."""
        rows, _ = given.graph(*copies(given.args))
        return bool(rows.shape[0] >= 2)

    small = smaller.shrunk(dumped(torch.randn(7, 3), x.detach()[:, :].new_ones(39, 7)), fails)
    assert [tuple(a.shape) for a in small.args] == [(1, 1), (2, 1)]
    assert fails(small)


def test_sizes_in_calls_shrink_with_the_arguments() -> None:
    class Viewed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.view(6, 10).sum(0)

    def fails(given: Dump) -> bool:
        try:
            return bool(given.graph(*given.args).numel() >= 2)
        except RuntimeError:
            return False

    small = smaller.shrunk(dumped(torch.randn(6, 10), model=Viewed()), fails)
    assert tuple(small.args[0].shape) == (1, 2)


def test_a_dump_keeps_storages_offsets_and_gradients(tmp_path: Path) -> None:
    base = torch.arange(12.0)
    given = dumped(base[2:8].view(2, 3).requires_grad_(), base[6:12].view(3, 2))
    assert dump.save(tmp_path / "graph.pt", given) == ""
    x, y = dump.load(tmp_path / "graph.pt").args
    assert (x.storage_offset(), y.storage_offset(), x.requires_grad) == (2, 6, True)
    y.fill_(0)
    assert x.flatten().tolist() == [2, 3, 4, 5, 0, 0]


WRONG = """
def wrong(graph, inputs):
    def call(*args):
        args[0].sub_(1)
        return tuple(2 * r for r in graph(*args))
    return call
torch._dynamo.register_backend(wrong, name="eager_but_wrong")
"""


@pytest.mark.parametrize("subject", ["result 0", "argument 0 afterwards", "gradient of argument 1"])
def test_a_script_fails_with_wrong_code_in_what_is_its_subject(tmp_path: Path, subject: str) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor]:
            x.add_(1)
            return ((x * w).exp(),)

    base = torch.arange(100.0) / 100
    given = dumped(base[8:14].view(2, 3).t(), torch.ones(3, 2).requires_grad_(), model=Scaled())
    text = script.script(given, "eager", "a title", subject, "torch", tmp_path)
    twice = text.replace("actual = run(", "actual = run(graph)\nrun(")  # right code, then wrong code
    twice += twice[twice.index("torch.testing") :].replace(
        "actual", "run(torch.compile(graph, backend='eager_but_wrong'))"
    )
    failed = run(tmp_path, twice.replace("\n\ndef arguments", f"\n{WRONG}\ndef arguments"))
    assert "not close" in failed.stderr
    assert failed.stderr.count("eager_but_wrong") > 0, "the right code must pass"


def test_a_script_has_complex_arguments_that_are_not_finite(tmp_path: Path) -> None:
    class Doubled(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (x + x,)

    given = dumped(torch.tensor([complex(float("nan"), 1), complex(float("inf"), -0.0)]), model=Doubled())
    text = script.script(given, "eager", "a title", "result 0", "torch", tmp_path)
    made = text[text.index("def arguments") : text.index("def run")]
    names = {"torch": torch, "tensor": torch.tensor}
    exec(made, names)
    (x,) = names["arguments"]()
    assert torch.equal(torch.view_as_real(x).isnan(), torch.view_as_real(given.args[0]).isnan())


def run(directory: Path, text: str) -> subprocess.CompletedProcess[str]:
    (directory / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, "script.py"], cwd=directory, capture_output=True, text=True, check=False, timeout=600
    )


def test_a_graph_with_parameters_of_its_own_has_no_script(tmp_path: Path) -> None:
    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

    with pytest.raises(ValueError, match="tensors of its own"):
        script.script(dumped(torch.ones(2), model=Linear()), "eager", "", "", "torch", tmp_path)
