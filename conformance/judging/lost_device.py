"""A device that raised, and has raised at everything since: only another process can use it."""

from __future__ import annotations

from conformance.backends import Capabilities
from conformance.judging import facts
from conformance.judging.oracle import CallOutcome
from conformance.judging.outcomes import error_parity
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact


class Loss:
    """Whether the device is lost to this process. It is asked after calls that raise."""

    def __init__(self, backend: Capabilities) -> None:
        self._backend = backend
        self._lost: BaseException | None = None
        self._late: BaseException | None = None

    @property
    def is_known(self) -> bool:
        """Whether the device was found lost."""
        return self._lost is not None

    def take_late_error(self) -> BaseException | None:
        """Return an error of late work that a question about the device has met, and forget it."""
        late, self._late = self._late, None
        return late

    def ask(self) -> None:
        """Ask the device twice: the first answer may be the error of work that was still queued."""
        late = None if self._lost else self._backend.late_error()
        if late is not None:
            self._lost = self._backend.late_error()
            self._late = self._late or late

    def is_met_by(self, outcome: CallOutcome) -> bool:
        """Whether the call raised, and the device raises at whatever else it is asked; or was lost before."""
        if outcome.error is not None:
            self.ask()
        return self.is_known

    def note(self, outcome: CallOutcome) -> None:
        """Take the error of a call that did not raise before as one of late work."""
        if outcome.error is not None:
            self._late = self._late or outcome.error
            self.ask()

    def differences(self, expected: CallOutcome, actual: CallOutcome) -> list[Mismatch]:
        """Compare the errors alone, of a call after which the device cannot be used."""
        if expected.error is None:
            parity = error_parity(None, actual.error)
            return [parity] if parity else []
        if self._backend.sticky_errors:
            return []
        lost = {"kind": Fact.DEVICE_LOST.value, "device": facts.error(self._lost)}
        return [Mismatch(Check.ERROR_PARITY, "", lost)]
