"""What makes two failures the same one: status, check, and the message without what changes from run to run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from conformance.bisect.processes import Ended
from conformance.bisect.search import Answer
from conformance.vocabulary import Check, Observation, Status

SKIP_CODE = 125  # of a script: this point cannot be tested

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_PATH = re.compile(r"(?:[\w.\-+~]*/)+([\w.\-+]+)")
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf|nan)(?![A-Za-z_])", re.IGNORECASE)
_LONGEST = 400
_CHECKS = frozenset(c.value for c in Check)


@dataclass(frozen=True, slots=True)
class Signature:
    """Of a failure. Equal signatures are taken for the same defect."""

    status: str  # a Status' value; for a script "exit code 1", "SIGSEGV" or "timeout"
    check: str  # a Check's value, or ""
    message: str  # normalised

    def text(self) -> str:
        return " ".join(part for part in (self.status, self.check) if part) + (
            f": {self.message}" if self.message else ""
        )


@dataclass(frozen=True, slots=True)
class Outcome:
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


def answer(outcome: Outcome, wanted: Signature | None, any_failure: bool = False) -> Answer:
    """What an outcome says of a failure with this signature; None: whatever does not pass is the failure."""
    if not outcome.judged:
        return Answer.UNKNOWN
    if outcome.passed:
        return Answer.GOOD
    if wanted is None or outcome.signature == wanted:
        return Answer.BAD
    fails = outcome.signature is not None and outcome.signature.status not in (Status.UNSUPPORTED, "absent")
    return Answer.BAD if any_failure and fails else Answer.UNKNOWN


def of_observation(seen: Observation, case: str, seconds: float) -> Outcome:
    """Of the cell that a case lies in, run with this case alone."""
    if seen.status is Status.PASS:
        return Outcome(True, None, True, f"{case}: pass ({seen.compared} compared)", seconds)
    failure = next((f for f in seen.failures if f.case == case), seen.failures[0] if seen.failures else None)
    if failure is None:
        judged = seen.status is Status.UNSUPPORTED
        return Outcome(False, Signature(seen.status, "", normalised(seen.reason)), judged, seen.reason, seconds)
    what = seen.signal or failure.check
    judged = seen.status is not Status.ERROR
    return Outcome(False, Signature(seen.status, what, _differences(failure.message)), judged, failure.message, seconds)


def of_script(ended: Ended) -> Outcome:
    """Of a command: 0 passes, 125 cannot be tested; else the exit code and the last line on stderr, or on stdout."""
    output = "\n".join(part for part in (ended.stdout.strip(), ended.stderr.strip()) if part)
    if ended.code == 0:
        return Outcome(True, None, True, output, ended.seconds)
    if ended.late:
        status = "timeout"
    elif ended.code < 0:
        status = f"signal {-ended.code}"
    else:
        status = f"exit code {ended.code}"
    said = (ended.stderr.strip() or ended.stdout.strip()).splitlines()
    found = Signature(status, "", normalised(said[-1]) if said and not ended.late else "")
    return Outcome(False, found, ended.code != SKIP_CODE, output, ended.seconds)


def _differences(message: str) -> str:
    """The lines of a failure's message that say what differs; where there is none, how the process ended."""
    lines = [line.strip() for line in message.splitlines()]
    kept = [line for line in lines if line.partition(": ")[0] in _CHECKS]
    return normalised(" | ".join(kept or lines[:1]))
