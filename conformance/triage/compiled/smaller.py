"""A smaller graph with smaller arguments that fails in the same way: torch's minifier, then the suite's shrinking."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from conformance.support.lines import error_line
from conformance.torch_versions import compiler_tools as tools
from conformance.triage.compiled import dump
from conformance.triage.compiled.dump import Dump
from conformance.triage.shrink import counting, smaller_that_fail

MOST_TRIES = 60  # of the shrinking
Fails = Callable[[Dump], bool]


def minified(whole: Dump, fails: Fails) -> tuple[Dump, str]:
    """Return the graph with only the calls that the failure needs, and why torch's minifier stopped, "" if it ended."""
    smallest = [whole]

    def made(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Dump:
        graph = torch.fx.GraphModule(graph, graph.graph)
        return replace(whole, graph=graph, args=dump.concrete(inputs))

    def keep(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        smallest.append(made(graph, inputs))

    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            tools.minify(whole.graph, dump.concrete(whole.args), lambda g, i: fails(made(g, i)), keep)
    except Exception as e:  # noqa: BLE001 - torch's own code, for any graph
        return smallest[-1], f"torch's minifier stopped: {error_line(e)}"
    return smallest[-1], ""


def shrunk(whole: Dump, fails: Fails) -> Dump:
    """Return the graph with smaller and simpler arguments."""
    return smaller_that_fail(whole, candidates, fails, MOST_TRIES)[-1]


def candidates(given: Dump) -> Iterator[Dump]:
    """Yield the graph with simpler arguments: smaller, without gradient, contiguous at offset 0, with simple values."""
    tensors = [a for a in given.args if isinstance(a, torch.Tensor)]
    for old in sorted({n for t in tensors for n in t.shape if n > 1}, reverse=True):
        for new in dict.fromkeys((1, 2, 3, old // 2)):
            if new < old:
                yield _resized(given, old, new)
    for i, a in enumerate(given.args):
        if isinstance(a, torch.Tensor):
            yield from (_with(given, i, t) for t in _simpler(a))


def _simpler(t: torch.Tensor) -> Iterator[torch.Tensor]:
    if t.requires_grad:
        yield t.detach()
    needs = t.requires_grad
    t = t.detach()
    if not t.is_contiguous() or t.storage_offset() or t.untyped_storage().nbytes() > t.nbytes:
        yield t.clone(memory_format=torch.contiguous_format).requires_grad_(needs)
    plain = counting(t.numel(), t.dtype).view(t.dtype).view(t.shape).to(t.device)
    if not torch.equal(plain, t):
        like = torch.empty(0, dtype=t.dtype, device=t.device)
        like.set_(t.untyped_storage().clone(), t.storage_offset(), t.shape, t.stride())
        if all(s for n, s in zip(t.shape, t.stride()) if n > 1):  # an expanded tensor cannot hold these values
            yield like.copy_(plain).requires_grad_(needs)


def _with(given: Dump, index: int, t: torch.Tensor) -> Dump:
    return replace(given, args=(*given.args[:index], t, *given.args[index + 1 :]))


def _resized(given: Dump, old: int, new: int) -> Dump:
    """Return the graph with each dimension of size ``old`` cut to ``new``, and ``new`` for ``old`` in its calls."""
    graph = torch.fx.GraphModule(given.graph, _copy(given.graph.graph))
    for node in graph.graph.nodes:
        node.args = _replaced(node.args, old, new)
        node.kwargs = _replaced(node.kwargs, old, new)
    graph.recompile()
    return replace(given, graph=graph, args=tuple(_cut(a, old, new) for a in given.args))


def _copy(graph: torch.fx.Graph) -> torch.fx.Graph:
    made = torch.fx.Graph()
    made.output(made.graph_copy(graph, {}))
    return made


def _replaced(value: Any, old: int, new: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_replaced(v, old, new) for v in value)
    if isinstance(value, dict):
        return {k: _replaced(v, old, new) for k, v in value.items()}
    return new if type(value) is int and value == old else value


def _cut(a: Any, old: int, new: int) -> Any:
    if not isinstance(a, torch.Tensor):
        return new if type(a) is int and a == old else a
    if old not in a.shape:
        return a
    cut = a.detach()[tuple(slice(new) if n == old else slice(None) for n in a.shape)]
    how = partial(cut.clone, memory_format=torch.contiguous_format)
    if a.storage_offset():  # keep the offset
        base = torch.zeros(a.storage_offset() + cut.numel(), dtype=a.dtype, device=a.device)
        return base[a.storage_offset() :].view(cut.shape).copy_(cut).requires_grad_(a.requires_grad)
    return how().requires_grad_(a.requires_grad)
