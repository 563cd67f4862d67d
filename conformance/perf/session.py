"""A measured run: rounds of child processes that time one case after the other, and may die at any case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from conformance.perf.model import End, Key, Limits, Machine, Record, Round, Size, Work, round_from
from conformance.running.child import Child, Death, Hang
from conformance.support.lines import last_line
from conformance.support.signals import signal_name

ROUNDS = 5
_PLANNING = 60.0  # seconds to find the sample of a case


class Asked(Protocol):
    """A child process, see :class:`conformance.running.child.Child`."""

    def ask(self, request: Any, timeout: float) -> dict[str, Any] | Death | Hang: ...
    def close(self) -> None: ...
    def kill(self) -> None: ...


@dataclass
class _Case:
    """A case while the run lasts."""

    record: Record
    sample: Any = None  # the sample at the case's size, encoded
    rounds: list[Round] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether the case can still be measured."""
        return self.record.end is End.NOT_REACHED and self.sample is not None

    def ended(self, end: End, reason: str) -> None:
        self.record = replace(self.record, end=end, reason=reason)


class Session:
    """One run over the cases of some overloads. ``start`` makes a child; one that died is replaced."""

    def __init__(self, start: Callable[[], Asked], timeout: float, tell: Callable[[str], None]) -> None:
        """``timeout``: seconds that one round of a case may take."""
        self._start = start
        self._timeout = timeout
        self._tell = tell
        self._child: Asked | None = None
        self._limits: list[Machine] = []

    def run(
        self, overloads: Mapping[str, str], dtype: str, sizes: Sequence[Size], rounds: int = ROUNDS
    ) -> tuple[list[Record], Machine]:
        """Return a record for each overload and size, and the limits of the machine.

        ``overloads``: the route by overload. After an interruption, cases without an end are ``not_reached``.
        """
        cases = [
            _Case(Record(Key(name, dtype, size), route, End.NOT_REACHED))
            for name, route in overloads.items()
            for size in sizes
        ]
        try:
            self._plan(cases)
            for number in range(rounds):
                self._round(cases, number, rounds)
            for case in cases:
                if case.is_open:
                    case.record = replace(case.record, end=End.MEASURED, rounds=tuple(case.rounds))
        except KeyboardInterrupt:
            self._tell("interrupted; what was not measured in every round counts as not reached")
            if self._child is not None:
                self._child.kill()
                self._child = None
        finally:
            self._close()
        return [case.record for case in cases], self._machine()

    def _plan(self, cases: Sequence[_Case]) -> None:
        """Find the sample of each case."""
        for number, case in enumerate(cases):
            key = case.record.key
            _planned(case, self._ask({"do": "size", "overload": key.overload, "size": key.size.value}, _PLANNING))
            self._progress("samples", number, len(cases))

    def _round(self, cases: Sequence[_Case], number: int, rounds: int) -> None:
        """Time a round of each case in a fresh process."""
        self._close()
        found = self._ask({"do": "limits"}, _PLANNING + self._timeout)
        if isinstance(found, dict):
            self._limits.append(Machine.from_json(found))
        left = [case for case in cases if case.is_open]
        for n, case in enumerate(left):
            request = {"do": "measure", "overload": case.record.key.overload, "sample": case.sample}
            _measured(case, self._ask(request | {"facts": number == 0}, self._timeout))
            self._progress(f"round {number + 1} of {rounds}", n, len(left))

    def _ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any] | Death | Hang:
        if self._child is None:
            self._child = self._start()
        reply = self._child.ask(request, timeout)
        if not isinstance(reply, dict):
            self._close()
        return reply

    def _close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _progress(self, what: str, n: int, of: int) -> None:
        if (n + 1) % 100 == 0 or n + 1 == of:
            self._tell(f"{what}: {n + 1} of {of}")

    def _machine(self) -> Machine:
        return Machine(Limits.median([m.device for m in self._limits]), Limits.median([m.cpu for m in self._limits]))


def _planned(case: _Case, found: dict[str, Any] | Death | Hang) -> None:
    """Enter the result of the search for a sample. A crash on CPU is no finding about the device."""
    if not isinstance(found, dict):
        end, reason = _ended(found)
        on_cpu = f"while its sample was tried on CPU: {reason}"
        case.ended(End.ERROR if end is End.ERROR else End.UNSUITABLE, on_cpu)
        return
    if "reason" in found:
        case.ended(End.UNSUITABLE, found["reason"])
        return
    case.sample = found["sample"]
    shapes = tuple(tuple(slot[1]) for slot in case.sample[5])  # see codec.encode
    case.record = replace(case.record, sample=case.sample[0], shapes=shapes)


def _measured(case: _Case, found: dict[str, Any] | Death | Hang) -> None:
    if not isinstance(found, dict):
        case.ended(*_ended(found))
    elif found["end"] != End.MEASURED:
        case.ended(End(found["end"]), found["reason"])
    else:
        case.rounds.append(round_from(found["round"]))
        if "work" in found:
            case.record = replace(case.record, work=Work(**found["work"]))


def _ended(found: Death | Hang) -> tuple[End, str]:
    """Return how a child ended, and the last line that it wrote."""
    said = last_line(found.log)
    if isinstance(found, Hang):
        return End.TIMEOUT, f"no end after {found.seconds:g} s"
    if found.broken:
        return End.ERROR, said
    return End.CRASH, f"{signal_name(found.status)}: {said}" if said else signal_name(found.status)


def forked(serve: Callable[[Any], dict[str, Any]]) -> Callable[[], Child]:
    """Return a function that starts a forked child. This process must not have used the device."""
    return lambda: Child(serve)


def counts(records: Iterable[Record]) -> dict[End, int]:
    """Return the number of cases of each end that occurs."""
    found = [record.end for record in records]
    return {end: found.count(end) for end in End if end in found}
