"""A lost device: it raised, and has raised at every request since, so that only another process can use it."""

from __future__ import annotations

from conformance.backends import Capabilities
from conformance.judging import facts
from conformance.judging.oracle import CallOutcome
from conformance.judging.outcomes import error_parity
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact


class Loss:
    """The state of a device that may be lost to this process. The device is asked after calls that raise."""

    def __init__(self, backend: Capabilities) -> None:
        self._backend = backend
        self._lost: BaseException | None = None
        self._late: BaseException | None = None

    @property
    def is_known(self) -> bool:
        """Whether the device was found lost."""
        return self._lost is not None

    def take_late_error(self) -> BaseException | None:
        """Return the error of queued work that a request to the device has met, and forget it."""
        late, self._late = self._late, None
        return late

    def ask(self) -> None:
        """Ask the device twice: the first error may be that of work that was still queued."""
        late = None if self._lost else self._backend.late_error()
        if late is not None:
            self._lost = self._backend.late_error()
            self._late = self._late or late

    def is_met_by(self, outcome: CallOutcome) -> bool:
        """Return whether the device is lost. If the call raised, ask the device first."""
        if outcome.error is not None:
            self.ask()
        return self.is_known

    def note(self, outcome: CallOutcome) -> None:
        """Record the error of a call that did not raise before as that of queued work, and ask the device."""
        if outcome.error is not None:
            self._late = self._late or outcome.error
            self.ask()

    def differences(self, expected: CallOutcome, actual: CallOutcome) -> list[Mismatch]:
        """Return the differences of the errors alone, for a call after which the device cannot be used."""
        if expected.error is None:
            parity = error_parity(None, actual.error)
            return [parity] if parity else []
        if self._backend.sticky_errors:
            return []
        lost = {"kind": Fact.DEVICE_LOST.value, "device": facts.error(self._lost)}
        return [Mismatch(Check.ERROR_PARITY, "", lost)]
