"""The search for the case that caused an error of late work, which a later case may have met instead. Pure.

A device may report an error in a later call than the one that caused it. Each cell therefore ends with a
synchronization, so that no cell meets the error of another cell. If a case may have met the error of an earlier case,
the cell runs again in a fresh process, with a synchronization after each case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from conformance.records import CaseFailure, Mismatch, Observation
from conformance.vocabulary import Check, Fact, Status

# Number of cells of one overload that run again in vain, after which only a known late error makes a cell run again.
ASKED = 2


def late_error(error: Mapping[str, str]) -> Mismatch:
    """Return the finding that the device raised when it was synchronized after a case. ``error``: type and message."""
    return Mismatch(Check.ERROR_PARITY, "", {"kind": Fact.LATE_ERROR.value, "device": dict(error)})


@dataclass(slots=True)
class LateErrorInquiry:
    """The choice of the cells that run again. ``_own``: the number of cells that ran again in vain, by overload."""

    _own: Counter[str] = field(default_factory=Counter)

    def suspects(self, observation: Observation, late: Mapping[str, str] | None, first_case: str) -> bool:
        """Return whether a case may have met the error of an earlier case.

        ``late``: the error that the device raised when it was synchronized at the end of the cell. ``first_case``: the
        case that ran first, which cannot have met the error of an earlier case.
        """
        if late or any(f.trouble for f in observation.failures):
            return True
        met = _raising(observation) - {first_case}
        return bool(met) and self._own[observation.cell.overload] < ASKED

    def charged(
        self, observation: Observation, late: Mapping[str, str] | None, settled: Observation | None, last_case: str
    ) -> Observation:
        """Return the observation in which the case that caused an error has the error.

        ``settled``: the observation of the run with a synchronization after each case; None if its process died. If
        that run does not show the error at the end of the cell, the last case is charged with it, so that it is not
        lost.
        """
        raised, caused = _raising(observation), _raising(settled) if settled else frozenset()
        if settled and (caused - raised or (caused and (late or observation.status is Status.ERROR))):
            return settled
        self._own[observation.cell.overload] += 1
        if not late:
            return observation
        failure = CaseFailure(last_case, (late_error(late),))
        status = observation.status if observation.status.is_failure else Status.FAIL
        return replace(observation, status=status, failures=(*observation.failures, failure))


def _raising(observation: Observation) -> frozenset[str]:
    """Return the cases in which the device raised and CPU did not, or in which the suite met an error."""
    return frozenset(f.case for f in observation.failures if f.trouble or any(map(_raised_alone, f.mismatches)))


def _raised_alone(m: Mismatch) -> bool:
    kind = m.facts.get("kind")
    return kind in (Fact.LATE_ERROR.value, Fact.DEVICE_LOST.value, Fact.UNREADABLE.value) or (
        kind == Fact.ERRORS.value and bool(m.facts["device"]) and not m.facts["cpu"]
    )
