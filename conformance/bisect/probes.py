"""One run of a case or a script at a point."""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from conformance.bisect.places import Place
from conformance.bisect.processes import Ended, Processes
from conformance.bisect.signature import ABSENT, ProbeOutcome, Signature, of_observation, of_script
from conformance.results import store
from conformance.support.exit_codes import Exit

LANE = "bisect"


class Probe(Protocol):
    """A case or a script that runs at each point."""

    def run(self, place: Place, case: str) -> ProbeOutcome:
        """Run the case or the script once. Raises Stopped."""

    def command(self, case: str) -> str:
        """Return the command that runs the case or the script once in an installed environment."""

    def minimal(self, place: Place, case: str) -> str:
        """Return a standalone script of the failure, "" if there is none."""


@dataclass(frozen=True)
class CaseProbe:
    """A case of the corpus, which the suite runs in the environment of the point."""

    processes: Processes
    backend: str
    seed: int
    timeout: float  # seconds
    variables: tuple[tuple[str, str], ...] = ()  # environment variables, e.g. an allocator mode
    corpus: str = ""  # the hash of the required corpus; "": any

    def run(self, place: Place, case: str) -> ProbeOutcome:
        with tempfile.TemporaryDirectory() as scratch:
            ended = self._pytest(place, case, Path(scratch))
            if ended.late:
                return ProbeOutcome(False, Signature("timeout"), True, ended.last_lines(), ended.seconds)
            try:
                run = store.read(Path(scratch) / "results" / LANE)
            except store.StoreError:
                return _without_results(ended)
        if self.corpus and run.manifest.corpus != self.corpus:
            said = f"another corpus, {run.manifest.corpus[:12]}: the same case may have other inputs"
            return ProbeOutcome(False, None, False, said, ended.seconds)
        if not run.observations:
            return ProbeOutcome(False, None, False, ended.last_lines(), ended.seconds)
        return of_observation(run.observations[0], case, ended.seconds, self.backend)

    def _pytest(self, place: Place, case: str, scratch: Path) -> Ended:
        command = [place.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "conformance.plugin"]
        command += [*self._arguments(case), "--results", "results", "--lane-name", LANE]
        command += ["--expected", os.devnull]  # a known failure may name an overload that this version lacks
        variables = {**place.variables, **dict(self.variables)}
        return self.processes.run(command, cwd=scratch, variables=variables, timeout=self.timeout)

    def _arguments(self, case: str) -> list[str]:
        return ["--pyargs", "conformance", "--backend", self.backend, "--seed", str(self.seed), "--case", case]

    def command(self, case: str) -> str:
        assigned = [f"{name}={shlex.quote(value)}" for name, value in self.variables]
        return " ".join([*assigned, "pytest", shlex.join(self._arguments(case))])

    def minimal(self, place: Place, case: str) -> str:
        command = [place.python, "-m", "conformance.cli", "repro", "--backend", self.backend, "--seed", str(self.seed)]
        ended = self.processes.run([*command, case], variables=place.variables, timeout=self.timeout)
        return ended.stdout if ended.code == 0 else ""


@dataclass(frozen=True)
class ScriptProbe:
    """A command, judged by its exit code: 0 passes, 125 cannot be tested, all others fail."""

    processes: Processes
    timeout: float
    variables: tuple[tuple[str, str], ...] = ()

    def run(self, place: Place, case: str) -> ProbeOutcome:
        variables = {**place.variables, **dict(self.variables)}
        return of_script(self.processes.run(case, cwd=place.directory, variables=variables, timeout=self.timeout))

    def command(self, case: str) -> str:
        return case

    def minimal(self, place: Place, case: str) -> str:  # noqa: ARG002 - the command is the script
        return ""


def _without_results(ended: Ended) -> ProbeOutcome:
    """Return the outcome of a run that judged no cell: this version has no such case, or the backend did not load."""
    absent = ended.code == Exit.UNKNOWN_CASE
    return ProbeOutcome(False, Signature(ABSENT) if absent else None, absent, ended.last_lines(), ended.seconds)
