"""A backend of ``torch.compile`` that compares each call of a graph with the same graph run op by op."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from conformance.support.compiled_code import compiler_error
from conformance.torch_versions import compiler_tools as tools
from conformance.triage.compiled import dump
from conformance.triage.compiled.comparing import Exact, first_difference
from conformance.triage.compiled.model import OWN, Kind, Wrong
from conformance.triage.compiled.twins import Outcome, RandomState, copies, in_float64, outcome, spoil_free_memory
from conformance.triage.watch import INTERNAL

#: The backends of the stages, the earliest first. If the program's own backend is an earlier stage, it is not replaced.
ORDER = ("eager", "aot_eager", "aot_eager_decomp_partition", "aot_eager_decomp_partition_crossref", OWN)


@dataclass
class Graph:
    """A graph of Dynamo. ``reference`` is never compiled; passes of a compiler change ``module``."""

    index: int
    module: torch.fx.GraphModule
    reference: torch.fx.GraphModule
    backend: str  # the name of the backend that compiles it
    options: dict[str, Any] = field(default_factory=dict)  # of torch.compile
    calls: int = 0


Stop = Callable[[Wrong, "Graph | None", Sequence[Any]], None]


class Checks:
    """The comparisons of one process, and their counts.

    ``stop(wrong, graph, arguments)`` is called at the first failure, ``told(phase, graph, call)`` before each step that
    may end the process, and ``due(graph, arguments)`` before each compilation and each call of a graph.
    """

    def __init__(
        self, stage: str, stop: Stop, told: Callable[[str, int, int], None] = lambda *_: None,
        due: Callable[[Graph, Sequence[Any]], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        self.stage, self.stop, self.told, self.due = stage, stop, told, due
        self.graphs: list[Graph] = []
        self.names: dict[str, None] = {}
        self.calls = 0
        self.unjudged: Counter[str] = Counter()

    def backend(self, given: Callable[..., Any], name: str) -> Backend:
        """Return the backend that replaces the program's backend ``given``."""
        self.names[name or getattr(given, "__name__", type(given).__name__)] = None
        earlier = ORDER[: ORDER.index(self.stage)] if self.stage in ORDER else ()
        if self.stage == OWN or name in (*earlier, self.stage):
            return Backend(self, given, name)
        return Backend(self, tools.backend_named(self.stage), self.stage)


class Backend:
    """A backend of ``torch.compile``. Equal for equal compilers, so that Dynamo does not compile again."""

    def __init__(self, checks: Checks, compiler: Callable[..., Any], name: str) -> None:
        self._checks, self._compiler, self._name = checks, compiler, name
        for attribute in ("get_compiler_config", "compiler_name", "backend_ctx_ctor"):
            if hasattr(compiler, attribute):
                setattr(self, attribute, getattr(compiler, attribute))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self._compiler == other._compiler and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def reset(self) -> None:
        """Reset the compiler, as torch does."""
        if hasattr(self._compiler, "reset"):
            self._compiler.reset()

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any], **kwargs: Any) -> Callable[..., Any]:
        checks = self._checks
        reference = dump.copied(module)
        graph = Graph(len(checks.graphs), module, reference, self._name, options_of(self._compiler, kwargs))
        checks.graphs.append(graph)
        checks.told("compile", graph.index, -1)
        checks.due(graph, inputs)
        try:
            compiled: Callable[..., Any] = self._compiler(module, inputs, **kwargs)
        except Exception as e:
            if tools.is_error(e) and not _raises(reference, inputs):
                checks.stop(wrong_of(e, "compile", graph), graph, inputs)
            raise
        checks.told("", -1, -1)

        def run(*args: Any) -> Any:
            self._compare(graph, compiled, args)
            result = compiled(*args)
            checks.told("", -1, -1)
            return result

        return run

    def _compare(self, graph: Graph, compiled: Callable[..., Any], args: Sequence[Any]) -> None:
        checks, call = self._checks, graph.calls
        graph.calls += 1
        checks.due(graph, args)
        if reason := not_comparable(args):
            checks.unjudged[reason] += 1
            checks.told("forward", graph.index, call)
            return
        before = copies(args)
        wrong = compared(graph, compiled, before, lambda phase: checks.told(phase, graph.index, call))
        checks.told("forward", graph.index, call)
        if isinstance(wrong, str):
            checks.unjudged[wrong] += 1
        elif wrong:
            checks.stop(wrong, graph, before)
        checks.calls += not isinstance(wrong, str)


def compared(
    graph: Graph, compiled: Callable[..., Any], args: Sequence[Any], told: Callable[[str], None] = lambda _: None
) -> Wrong | str | None:
    """Compare compiled code with its graph. Return the failure, the reason why they cannot be compared, or None.

    The arguments and the random state do not change.
    """
    state = RandomState(args)
    expected = outcome(graph.reference, copies(args))
    random = state.moved
    state.restore()
    if expected.raised:
        return f"the graph itself raises {type(expected.raised).__name__}"
    spoil_free_memory(expected.values)
    actual = outcome(compiled, copies(args), told)
    told("")
    state.restore()
    if actual.raised:
        return wrong_of(actual.raised, actual.phase, graph)
    if random and not tools.draws_alike(graph.backend):
        return "it draws random numbers, and Inductor draws others (see torch._inductor.config.fallback_random)"
    exact = lru_cache(lambda: None if random else in_float64(graph.reference, args))
    wrong = _difference(expected, actual, exact, graph)
    state.restore()
    return wrong


def _difference(expected: Outcome, actual: Outcome, exact: Exact, graph: Graph) -> Wrong | None:
    subject, message = first_difference(expected.names, expected.values, actual.values, exact)
    if not message:
        return None
    phase = "backward" if subject.startswith("gradient") else "forward"
    return Wrong(Kind.VALUES, message, "", phase, subject, graph.index, graph.calls - 1, caller())


def not_comparable(args: Sequence[Any]) -> str:
    """Return why a call of a graph with these arguments cannot be compared, "" if it can."""
    odd = [type(a).__name__ for a in args if isinstance(a, torch.Tensor) and type(a) not in _PLAIN]
    return f"it has an argument of the type {odd[0]}" if odd else ""


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def options_of(compiler: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments, other than model and backend, that the program passes to ``torch.compile``, by name."""
    found = dict(getattr(compiler, "kwargs", {})) | kwargs
    if config := getattr(compiler, "config", None):
        found["options"] = dict(config)
    if getattr(compiler, "dynamic", None) is not None:
        found["dynamic"] = compiler.dynamic  # type: ignore[attr-defined]
    return found


def wrong_of(e: BaseException, phase: str = "", graph: Graph | None = None) -> Wrong:
    """Return an error as a record."""
    inner = getattr(e, "inner_exception", None) or e
    first = next((line.strip() for line in str(inner).splitlines() if line.strip()), "")
    index, call = (graph.index, graph.calls - 1) if graph else (-1, -1)
    line = compiler_error(e)
    return Wrong(Kind.RAISED, first[:500], type(inner).__name__, phase, "", index, call, caller(), line)


def _raises(reference: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Return whether the graph itself raises for the inputs that it is compiled for."""
    try:
        return outcome(reference, copies(inputs)).raised is not None
    except Exception:  # noqa: BLE001 - inputs without values
        return False


def caller() -> str:
    """Return the innermost line outside torch and the suite."""
    own = [f for f in traceback.extract_stack() if not any(part in f.filename for part in INTERNAL)]
    own = [f for f in own if not f.filename.startswith("<") and "torchinductor" not in f.filename]
    return f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}" if own else ""
