"""The hazards as a hunter: each is run under equal delays, and then under delays drawn from seeds."""

from __future__ import annotations

from conformance.backends import Capabilities
from conformance.hazards import runner
from tools.kill_rate.trial import Finding

ROUNDS = 6


class HazardHunter:
    """All hazards, and the random programs. ``timeout``: seconds for each."""

    untraced = ()

    def __init__(self, backend: Capabilities, timeout: float) -> None:
        self._backend = backend
        self._schedules = runner.rounds_of(backend, ROUNDS, first_seed=1)
        self._timeout = timeout
        self.plan = runner.names()

    def attempt(self, item: str) -> Finding | None:
        """Run a hazard in a forked child."""
        result = runner.run(item, self._backend, self._schedules, self._timeout)
        return Finding("hazard", f"hazard {item}", result.failure.partition("\n")[0]) if result.failure else None

    def rest(self) -> None:
        """Do nothing: no child outlives its hazard."""
