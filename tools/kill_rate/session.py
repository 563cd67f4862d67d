"""The measurement: its steps, the workers of each, and the summary."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from conformance.lanes import process
from conformance.lanes.matrix import Lane, Matrix
from tools.kill_rate import trial
from tools.kill_rate.own_tests import OwnTests
from tools.kill_rate.peers import PEERS, environment_of, lane_of
from tools.kill_rate.summary import Facts, Hunt, summary

# Environments in which work runs later than it is submitted. The hazards and all scenarios run in them as well.
LATE = ("late", "pool_late", "lazy")
Step = tuple[Lane, str]  # a stage in a lane


@dataclass(frozen=True)
class Session:
    """The lanes and faults to measure, and the directory of the results. The lanes' and peers' environments must exist.

    Without lanes the peers run alone.
    """

    matrix: Matrix
    faults: tuple[str, ...]
    lanes: tuple[Lane, ...]
    peers: tuple[str, ...]
    root: Path
    results: Path
    workers: int
    own_tests: bool = True  # look for survivors with the backend's own tests
    sample: tuple[str, ...] | None = None  # the faults that peers look for, if not all

    def run(self) -> dict[str, Any]:
        """Run the missing trials, and write the summary. Raises KeyboardInterrupt; finished trials are kept."""
        started = time.monotonic()
        ran = self._run_steps()
        for name in self.peers:
            self._together(self._lane_of(name), name, self._faults_of_peers)
        tests = self._own_tests(ran) if self.own_tests and self.lanes else None
        facts = Facts(self.faults, self.matrix.main_torch.version, round(time.monotonic() - started))
        made = summary(facts, self._hunts(ran), tests)
        (self.results / "summary.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        return made

    @property
    def _faults_of_peers(self) -> tuple[str, ...]:
        return self.faults if self.sample is None else self.sample

    def _lane_of(self, peer: str) -> Lane:
        first = self.lanes[0] if self.lanes else measured(self.matrix)[0]
        return lane_of(PEERS[peer], self.matrix, first)

    def _own_tests(self, ran: Sequence[Step]) -> dict[str, str] | None:
        python = process.start(self.root, self.lanes[0].name).python
        own = OwnTests(self.root, self.matrix, python, self.results / "own_tests.json")
        return own.kills(list(self._left(ran)))

    def _hunts(self, ran: Sequence[Step]) -> list[Hunt]:
        """Return the stored trials of each lane, in these steps, and of each peer."""
        tried = {trial.CLEAN, *self._faults_of_peers}
        peers = {name: self._trials(self._lane_of(name), name) for name in self.peers}
        found = [Hunt(name, tuple(t for t in all_ if t.fault in tried), peer=True) for name, all_ in peers.items()]
        return [*self._in_lanes(ran), *found]

    def _in_lanes(self, ran: Sequence[Step]) -> list[Hunt]:
        found: dict[str, list[trial.Trial]] = {short(lane, self.matrix): [] for lane in self.lanes}
        for lane, stage in ran:
            found[short(lane, self.matrix)] += self._trials(lane, stage)
        return [Hunt(name, tuple(trials)) for name, trials in found.items()]

    def _left(self, ran: Sequence[Step]) -> tuple[str, ...]:
        """Return the faults that no lane has found in these steps."""
        killed = {t.fault for hunt in self._in_lanes(ran) for t in hunt.trials if t.killed}
        return tuple(fault for fault in self.faults if fault not in killed)

    def _trials(self, lane: Lane, hunter: str) -> tuple[trial.Trial, ...]:
        """Return the stored trials of these faults, and those without a fault. The files may have trials of others."""
        files = [part.file(self._file(lane, hunter)) for part in self._parts(hunter)]
        wanted = {trial.CLEAN, *self.faults}
        return tuple(t for each in files for t in trial.read(each) if t.fault in wanted)

    def _side_by_side(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run workers in parallel. After a failure no other worker starts."""
        with ThreadPoolExecutor(self.workers) as pool:
            running = [pool.submit(job) for job in jobs]
            try:
                for each in running:
                    each.result()
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _run_steps(self) -> list[Step]:
        """Run the steps until every fault is found. Return the steps that ran.

        All workers share the items of a step.
        """
        ran: list[Step] = []
        for lane, stage in steps(self.lanes, self.matrix):
            if not self._left(ran):
                break
            self._together(lane, stage, ())  # without faults: deletes the trials of another plan
            ran.append((lane, stage))
            if left := self._left(ran):  # an interrupted measurement may have found them in this step
                self._together(lane, stage, left)
        return ran

    def _together(self, lane: Lane, stage: str, faults: tuple[str, ...]) -> None:
        self._side_by_side([partial(self._work, lane, stage, faults, part) for part in self._parts(stage)])

    def _parts(self, hunter: str) -> list[trial.Part]:
        """Return a part for each worker, or more, which run one after another."""
        return trial.Part(0, max(self.workers, PEERS[hunter].parts if hunter in PEERS else 1)).all

    def _file(self, lane: Lane, hunter: str) -> Path:
        return self.results / (f"{hunter}.jsonl" if hunter in PEERS else f"{short(lane, self.matrix)}.{hunter}.jsonl")

    def _work(self, lane: Lane, hunter: str, faults: tuple[str, ...], part: trial.Part) -> None:
        """Run one worker. Raises KeyboardInterrupt or CalledProcessError."""
        start = process.start(self.root, lane.name)
        peer = PEERS.get(hunter)
        python = self._interpreter_of(hunter) if peer and peer.packages else start.python
        command = [python, "-W", "ignore", "-m", "tools.kill_rate.worker", self.matrix.module, lane.backend]
        command += [peer.module if peer else hunter, str(self._file(lane, hunter)), str(part), *faults]
        done = subprocess.run(command, cwd=self.root, env=clean(lane.backend) | start.variables, check=False)
        if done.returncode == 130:
            raise KeyboardInterrupt
        done.check_returncode()

    def _interpreter_of(self, peer: str) -> str:
        """Return the interpreter of a peer's own environment. Raises NotMade if there is no such environment."""
        file = process.interpreter_file(self.root, environment_of(peer))
        if not file.is_file():
            raise process.NotMade(
                f"peer {peer}: its environment does not exist; create it with: nox -s {environment_of(peer)}"
            )
        return file.read_text(encoding="utf-8")


def steps(lanes: Sequence[Lane], m: Matrix) -> list[Step]:
    """Return the steps of a measurement in these lanes.

    The first lane has all of its cells first, since most faults show in any lane. The programs of the lanes in which
    work is late come last, for the fewest faults: many start processes, and run again for every fault.
    """
    if not lanes:
        return []
    first, *others = lanes
    late = [lane for lane in others if short(lane, m) in LATE]
    return [
        *((first, stage) for stage in (trial.QUICK, "smoke", "contexts", "full")),
        *((lane, trial.QUICK) for lane in others),
        *((lane, trial.HAZARDS) for lane in (first, *late)),
        *((lane, "scenarios") for lane in late),
    ]


def measured(m: Matrix) -> list[Lane]:
    """Return the main torch's lanes: all environments of the first build, the first environment of the others.

    Builds with ThreadSanitizer are left out: it finds no fault of a single thread, and makes each call five to fifteen
    times slower.
    """
    environment = m.environments[0]
    lanes = [lane for lane in m.lanes() if lane.torch == m.main_torch and "thread" not in lane.build.sanitizers]
    return [lane for lane in lanes if lane.build == m.builds[0] or lane.environment == environment]


def short(lane: Lane, m: Matrix) -> str:
    """Return a lane's name in the tables: ``guard`` in the first build, ``malloc-asan`` in another."""
    return lane.environment.name + ("" if lane.build == m.builds[0] else f"-{lane.build.name}")


def clean(backend: str) -> dict[str, str]:
    """Return the environment variables of this process without those of the backend, which a lane sets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(f"{backend.upper()}_")}
