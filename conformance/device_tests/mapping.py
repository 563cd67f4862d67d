"""The tests of PyTorch that a failing cell stands for: OpInfos by overload, kinds of tests by layout and finding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache

from conformance.device_tests.kinds import KIND_OF_LAYOUT, PLAIN, SEEN_CHECKS
from conformance.records import CaseFailure, Observation
from conformance.torch_versions.device_tests import OpInfoName
from conformance.vocabulary import Fact, Status

# Ending of a recorded sample's label -> the kind of the call.
_FORMS = {"inplace": "inplace", "out": "out", "backward": "backward", "error": "errors"}

Labels = Callable[[str], Iterable[str]]  # overload -> the labels of its samples that OpInfos made


class NotMapped(Exception):
    """A cell that no test of PyTorch stands for, with the reason."""


class OpInfoMap:
    """The OpInfos whose tests call an overload, each with the form of the call.

    An OpInfo that is named after an operator stands for all overloads of the operator. An OpInfo that is named after no
    operator, such as a function written in Python, stands for the overloads that the corpus recorded from its samples.
    For an overload whose operator no OpInfo is named after, this holds for all OpInfos.
    """

    def __init__(
        self, names: Iterable[OpInfoName], overloads: Collection[str], outs: Collection[str], labels: Labels
    ) -> None:
        """``overloads``: all overloads of torch; ``outs``: the overloads that write results into arguments."""
        operators = {_operator(name) for name in overloads}
        table = {name.full_name: name.operators & operators for name in names}
        self.ops = frozenset(table)
        self._outs, self._labels = outs, labels
        self._named: dict[str, list[str]] = {}
        for op in sorted(table):
            for operator in table[op]:
                self._named.setdefault(operator, []).append(op)
        self._unnamed = {op for op, found in table.items() if not found}
        self.ops_of = cache(self._ops_of)

    def _ops_of(self, overload: str) -> tuple[tuple[str, str], ...]:
        """Return pairs of an OpInfo and a kind: "plain", or "inplace", "out", "backward", "errors"."""
        form = self._form(overload)
        named = {(op, form) for op in self._named.get(_operator(overload), ())}
        recorded = {pair for label in self._labels(overload) if (pair := self._of_label(label, form))}
        return tuple(sorted(named | {(op, of) for op, of in recorded if not named or op in self._unnamed}))

    def _form(self, overload: str) -> str:
        if overload in self._outs:
            return "out"
        return "inplace" if _is_inplace(overload.partition(".")[0]) else PLAIN

    def _of_label(self, label: str, form: str) -> tuple[str, str] | None:
        """Return the OpInfo and the kind of ``nn.functional.relu.backward``, None if torch has no such OpInfo."""
        parts = label.split(".")
        for end in range(len(parts), 0, -1):
            op = ".".join(parts[:end])
            if op in self.ops:
                return op, next((_FORMS[part] for part in parts[end:] if part in _FORMS), form)
        return None


def places(observation: Observation, ops: OpInfoMap) -> Iterator[tuple[str, str]]:
    """Yield the OpInfos and kinds of tests that a failing cell stands for. Raises NotMapped with the reason."""
    cell = observation.cell
    if cell.is_scenario:
        raise NotMapped("a scenario is no op")
    kind = KIND_OF_LAYOUT.get(cell.layout)
    if kind is None:
        raise NotMapped(f"PyTorch's tests do not try {cell.layout!r}")
    if not _seen(observation, kind):
        checks = sorted({f.check for f in observation.failures})
        raise NotMapped(f"PyTorch's tests do not check {', '.join(checks)}")
    found = ops.ops_of(cell.overload)
    if not found:
        raise NotMapped("no OpInfo calls the overload")
    for op, form in found:
        yield op, _kind(observation, form, kind)


def _kind(observation: Observation, form: str, kind: str) -> str:
    if observation.failures and all(map(_cpu_raised, observation.failures)):
        return "errors"
    return kind if form == PLAIN else form


def _seen(observation: Observation, kind: str) -> bool:
    """Return whether the tests compare a fact that differs. Tests of fake tensors also compare strides."""
    if observation.status is not Status.FAIL or kind == "fake":
        return True
    return any(m.check in SEEN_CHECKS for f in observation.failures for m in f.mismatches)


def _cpu_raised(failure: CaseFailure) -> bool:
    found = [m.facts for m in failure.mismatches if m.kind == Fact.ERRORS]
    return bool(found) and all(facts.get("cpu") is not None for facts in found)


def _operator(overload: str) -> str:
    """Return the operator without the underscore of its in-place form."""
    name = overload.partition(".")[0]
    return name[:-1] if _is_inplace(name) else name


def _is_inplace(operator: str) -> bool:
    return operator.endswith("_") and not operator.endswith("__")
