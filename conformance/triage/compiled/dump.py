"""A graph with its arguments in a file."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from conformance.support.whole_file import replaced


@dataclass(frozen=True)
class Dump:
    """A graph of Dynamo, its arguments, and how it was compiled."""

    graph: torch.fx.GraphModule
    args: tuple[Any, ...]
    backend: str
    options: dict[str, Any] = field(default_factory=dict)
    modes: dict[str, Any] = field(default_factory=dict)  # of :func:`modes_now`

    @property
    def elements(self) -> int:
        """The number of elements of all arguments."""
        return sum(a.numel() for a in self.args if isinstance(a, torch.Tensor))

    @property
    def nodes(self) -> int:
        """The number of calls of the graph."""
        return sum(n.op not in ("placeholder", "output") for n in self.graph.graph.nodes)


def copied(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Return a graph module of the same calls without type annotations, since some cannot be written as code."""
    made = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    for node in made.graph.nodes:
        node.type = None
    made.recompile()
    return made.train(graph.training)


def save(path: Path, dump: Dump) -> str:
    """Write the file, whole or not at all. Return why the graph cannot be stored, "" if it is stored."""
    content = {"graph": dump.graph, "args": dump.args, "backend": dump.backend, "options": dump.options}
    content["modes"] = dump.modes
    try:
        with replaced(path) as scratch:
            torch.save(content, scratch)
            load(scratch)
    except Exception as e:  # noqa: BLE001 - whatever an object raises that cannot be pickled
        return f"the graph cannot be stored: {type(e).__name__}: {e}"
    return ""


def load(path: Path, device: str | None = None) -> Dump:
    """Read a file that :func:`save` has written on this machine. ``device``: where the tensors go, None: as stored.

    The file is unpickled, so it must come from this machine's own triage.
    """
    found = torch.load(path, weights_only=False, map_location=device)
    return Dump(found["graph"], tuple(found["args"]), found["backend"], found["options"], found["modes"])


def modes_now(args: Sequence[Any]) -> dict[str, Any]:
    """Return whether gradients are recorded, and autocast's dtype by device type of the arguments."""
    kinds = sorted({a.device.type for a in args if isinstance(a, torch.Tensor)} - {"meta"})
    cast = {k: torch.get_autocast_dtype(k) for k in kinds if torch.is_autocast_enabled(k)}
    return {"grad": torch.is_grad_enabled(), "autocast": cast}


def concrete(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return arguments that :func:`save` can store: symbolic integers become their hints.

    Tensor subclasses, such as fake tensors, become tensors with random values, or zeros for integers.
    """
    return tuple(_concrete(a) for a in args)


def _concrete(a: Any) -> Any:
    if isinstance(a, torch.SymInt):
        return int(a.node.hint)
    if isinstance(a, torch.nn.Parameter):
        return a.detach().requires_grad_(a.requires_grad)
    if not isinstance(a, torch.Tensor) or type(a) is torch.Tensor:
        return a.detach().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a
    size, stride = [[int(n) for n in each] for each in (a.shape, a.stride())]
    made = torch.empty_strided(size, stride, dtype=a.dtype, device=a.device)
    return (made.normal_() if a.is_floating_point() else made.zero_()).requires_grad_(a.requires_grad)
