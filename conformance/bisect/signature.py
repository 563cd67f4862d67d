"""What makes two failures the same one: status, signal, and the findings' facts without what varies between runs."""

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
SKIP_CODE = 125  # of a script: this point cannot be tested

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_PATH = re.compile(r"(?:[\w.\-+~]*/)+([\w.\-+]+)")
_NUMBER = re.compile(r"(?<![A-Za-z_\d])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf|nan)(?![A-Za-z_])", re.IGNORECASE)
_LONGEST = 400
# The facts that a defect has in every run, by the kind of the finding. Counts, indices and values are left out: they
# depend on the version of torch, the machine and the memory. Sides that are compared are kept where they are names.
_STEADY: dict[str, tuple[str, ...]] = {
    Fact.ELEMENTS: ("dtype",),
    Fact.METADATA: ("what",),
    Fact.ALIASING: ("device", "cpu"),
    Fact.IDENTITY: ("device", "cpu"),
    Fact.ERRORS: ("device", "cpu"),
    Fact.SECOND_CALL_RAISED: ("error",),
    Fact.DEVICE: ("device", "wanted"),
    Fact.FRESH_MEMORY: ("byte",),
    Fact.ROUTE: ("registered",),
    Fact.DAMAGE: ("line",),
}
_NAMES = ("dtype", "type", "layout", "conj", "neg", "zero")  # properties whose two sides are names


@dataclass(frozen=True, slots=True)
class Signature:
    """Of a failure. Equal signatures are taken for the same defect."""

    status: str  # a Status' value; for a script "exit code 1", "SIGSEGV" or "timeout"
    signal: str = ""  # of a crash, and the side that died: "SIGSEGV device"
    findings: tuple[tuple[str, ...], ...] = ()  # of a case: check, subject, kind and the steady facts of each
    said: str = ""  # of a script: its last line, normalised; of a case that has no findings: why

    def text(self) -> str:
        first = " ".join(part for part in (self.status, self.signal) if part)
        found = "; ".join(" ".join(filter(None, one)) for one in self.findings)
        return ": ".join(filter(None, (first, found or self.said)))


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What one run of a case or a script came to."""

    passed: bool
    signature: Signature | None  # of what it came to, where it did not pass
    judged: bool  # False: it could not be tested at all
    output: str  # for a person
    seconds: float


def normalised(message: str) -> str:
    """The message with numbers, addresses and directories taken out, on one line."""
    text = _NUMBER.sub("N", _PATH.sub(r"\1", _ADDRESS.sub("ADDRESS", message)))
    return " ".join(text.split())[:_LONGEST]


def answer(outcome: ProbeOutcome, wanted: Signature | None, any_failure: bool = False) -> Answer:
    """What an outcome says of a failure with this signature; None: whatever does not pass is the failure."""
    if not outcome.judged:
        return Answer.UNKNOWN
    if outcome.passed:
        return Answer.GOOD
    if wanted is None or outcome.signature == wanted:
        return Answer.BAD
    fails = outcome.signature is not None and outcome.signature.status not in (Status.UNSUPPORTED, ABSENT)
    return Answer.BAD if any_failure and fails else Answer.UNKNOWN


def of_observation(seen: Observation, case: str, seconds: float, backend: str) -> ProbeOutcome:
    """Of the cell that a case lies in, run with this case alone."""
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
    """Of a command: 0 passes, 125 cannot be tested; else the exit code and the last line on stderr, or on stdout."""
    output = "\n".join(part for part in (ended.stdout.strip(), ended.stderr.strip()) if part)
    if ended.code == 0:
        return ProbeOutcome(True, None, True, output, ended.seconds)
    status = "timeout" if ended.late else signal_name(ended.code)
    said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    found = Signature(status, said=normalised(said[-1]) if said and not ended.late else "")
    return ProbeOutcome(False, found, ended.code != SKIP_CODE, output, ended.seconds)


def _signal(failure: CaseFailure) -> str:
    """What ended the process, and on which side; of a sanitizer's report the kind of error and its function."""
    died = failure.death
    if died is None:
        return ""
    report = (died.report.kind, died.report.function) if died.report else ()
    return " ".join(filter(None, (died.signal, died.phase, *report)))


def _findings(failure: CaseFailure) -> tuple[tuple[str, ...], ...]:
    """The steady facts of each finding, the first of which are its check, subject and kind."""
    if failure.older:
        return ((failure.older_check,),)
    return tuple((m.check.value, m.subject, m.kind, *_steady(m)) for m in failure.mismatches)


def _steady(found: Mismatch) -> list[str]:
    names = _STEADY.get(found.kind, ())
    if found.facts.get("what") in _NAMES:
        names = (*names, "device", "cpu")
    return [_plain(name, found.facts.get(name)) for name in names]


def _plain(name: str, fact: Any) -> str:
    """A fact as text; what an operator or an allocator says, without numbers, addresses and directories."""
    if isinstance(fact, Mapping):
        return f"{fact.get('type')}: {normalised(str(fact.get('message')))}"
    if fact is None:
        return "nothing"
    return normalised(str(fact)) if name == "line" else str(fact)
