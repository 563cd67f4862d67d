"""The signature of a failure: status, signal, and the facts of its findings that do not vary between runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.bisect.processes import Ended
from conformance.bisect.search import Answer
from conformance.explain import describe
from conformance.records import CaseFailure, Mismatch, Observation
from conformance.support.signals import signal_name
from conformance.vocabulary import Fact, Status

ABSENT = "absent"  # a status that only a search has: this version has no such case
SKIP_CODE = 125  # exit code of a script: this point cannot be tested

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_PATH = re.compile(r"(?:[\w.\-+~]*/)+([\w.\-+]+)")
_NUMBER = re.compile(r"(?<![A-Za-z_\d])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf|nan)(?![A-Za-z_])", re.IGNORECASE)
_LONGEST = 400
# The facts that are equal in every run of a defect, by the kind of the finding. Counts, indices and values depend on
# the torch version, the machine and the memory, so they are omitted, except values that are names.
_STEADY: dict[str, tuple[str, ...]] = {
    Fact.ELEMENTS: ("dtype",),
    Fact.METADATA: ("what",),
    Fact.ALIASING: ("device", "cpu"),
    Fact.IDENTITY: ("device", "cpu"),
    Fact.ERRORS: ("device", "cpu"),
    Fact.LATE_ERROR: ("device",),
    Fact.DEVICE_LOST: ("device",),
    Fact.UNREADABLE: ("device",),
    Fact.SECOND_CALL_RAISED: ("error",),
    Fact.PROGRAM: ("error",),
    Fact.DEVICE: ("device", "wanted"),
    Fact.MEMORY_DEVICE: ("device", "wanted"),
    Fact.FRESH_MEMORY: ("byte",),
    Fact.ROUTE: ("registered",),
    Fact.DAMAGE: ("line",),
}
_NAMES = ("dtype", "type", "layout", "conj", "neg", "zero")  # properties whose two sides are names


@dataclass(frozen=True, slots=True)
class Signature:
    """The signature of a failure. Equal signatures count as the same defect."""

    status: str  # a Status' value; for a script "exit code 1", "SIGSEGV" or "timeout"
    signal: str = ""  # of a crash: the signal and the side, "SIGSEGV device"
    findings: tuple[tuple[str, ...], ...] = ()  # of a case: check, subject, kind and the steady facts of each
    said: str = ""  # of a script: its last line, normalised; of a case without findings: the reason

    def text(self) -> str:
        first = " ".join(part for part in (self.status, self.signal) if part)
        found = "; ".join(" ".join(filter(None, one)) for one in self.findings)
        return ": ".join(filter(None, (first, found or self.said)))


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The outcome of one run of a case or a script."""

    passed: bool
    signature: Signature | None  # None if it passed or could not be tested
    judged: bool  # False: it could not be tested
    output: str  # for a person
    seconds: float


def normalised(message: str) -> str:
    """Return the message without numbers, addresses and directories, on one line."""
    text = _NUMBER.sub("N", _PATH.sub(r"\1", _ADDRESS.sub("ADDRESS", message)))
    return " ".join(text.split())[:_LONGEST]


def answer(outcome: ProbeOutcome, wanted: Signature | None, any_failure: bool = False) -> Answer:
    """Return the answer of an outcome about the failure ``wanted``; None: every failure counts."""
    if not outcome.judged:
        return Answer.UNKNOWN
    if outcome.passed:
        return Answer.GOOD
    if wanted is None or outcome.signature == wanted:
        return Answer.BAD
    fails = outcome.signature is not None and outcome.signature.status not in (Status.UNSUPPORTED, ABSENT)
    return Answer.BAD if any_failure and fails else Answer.UNKNOWN


def of_observation(seen: Observation, case: str, seconds: float, backend: str) -> ProbeOutcome:
    """Return the outcome of a case from the observation of its cell, in which only this case ran."""
    if seen.status is Status.PASS:
        return ProbeOutcome(True, None, True, f"{case}: pass ({seen.compared} compared)", seconds)
    failure = next((f for f in seen.failures if f.case == case), seen.failures[0] if seen.failures else None)
    if failure is None:
        judged = seen.status is Status.UNSUPPORTED
        return ProbeOutcome(False, Signature(seen.status, said=normalised(seen.reason)), judged, seen.reason, seconds)
    judged = seen.status is not Status.ERROR
    output = describe.failure(failure, seen.cell, seen.route, backend)
    return ProbeOutcome(False, Signature(seen.status, _signal(failure), _findings(failure)), judged, output, seconds)


def of_script(ended: Ended) -> ProbeOutcome:
    """Return the outcome of a command. A failure's signature is the exit code and the last line of its output."""
    output = "\n".join(part for part in (ended.stdout.strip(), ended.stderr.strip()) if part)
    if ended.code == 0:
        return ProbeOutcome(True, None, True, output, ended.seconds)
    status = "timeout" if ended.late else signal_name(ended.code)
    said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    found = Signature(status, said=normalised(said[-1]) if said and not ended.late else "")
    return ProbeOutcome(False, found, ended.code != SKIP_CODE, output, ended.seconds)


def _signal(failure: CaseFailure) -> str:
    """Return the signal and the side of a death, with the error and the function of a sanitizer's report."""
    died = failure.death
    if died is None:
        return ""
    report = (died.report.kind, died.report.function) if died.report else ()
    return " ".join(filter(None, (died.signal, died.phase, *report)))


def _findings(failure: CaseFailure) -> tuple[tuple[str, ...], ...]:
    """Return check, subject, kind and the invariant facts of each finding."""
    if failure.older:
        return ((failure.older_check,),)
    return tuple((m.check.value, m.subject, m.kind, *_steady(m)) for m in failure.mismatches)


def _steady(found: Mismatch) -> list[str]:
    names = _STEADY.get(found.kind, ())
    if found.facts.get("what") in _NAMES:
        names = (*names, "device", "cpu")
    return [_plain(name, found.facts.get(name)) for name in names]


def _plain(name: str, fact: Any) -> str:
    """Return a fact as text. Messages of operators and allocators are normalised."""
    if isinstance(fact, Mapping):
        return f"{fact.get('type')}: {normalised(str(fact.get('message')))}"
    if fact is None:
        return "nothing"
    return normalised(str(fact)) if name == "line" else str(fact)
