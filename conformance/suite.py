"""A run's ingredients put together: corpus, inventory, families and backend; its cells, and how one of them is run."""

from __future__ import annotations

import platform
import time
import traceback
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from conformance import backends, ops
from conformance.backends import Capabilities
from conformance.corpus import reader
from conformance.explain import describe
from conformance.inventory import Overload, call_of, inventory
from conformance.judging import bringup, host_heap
from conformance.judging.judge import Judge
from conformance.judging.tolerances import rules_of
from conformance.judging.twins import Twins, poison
from conformance.lanes.matrix import lane_name
from conformance.plan import cases as cases_
from conformance.plan.cases import TIERS, Case, Tier
from conformance.results import resume
from conformance.results.store.manifest import Manifest, cpu_model, run_name
from conformance.results.summary import Target
from conformance.running.progress import Progress
from conformance.support.suggestions import unknown
from conformance.vocabulary import FAILURES_KEPT, CaseFailure, CellId, Observation, Status


@dataclass(frozen=True)
class Selection:
    """Which part of the matrix a run takes. None takes all."""

    tier: Tier = TIERS["full"]
    dtypes: frozenset[str] | None = None
    layouts: frozenset[str] | None = None
    routes: frozenset[str] | None = None
    case: str = ""  # this case alone

    def narrowed(self) -> Tier:
        """The tier, cut down to the dtypes and layouts asked for."""
        return replace(
            self.tier,
            dtypes=self.dtypes if self.dtypes is not None else self.tier.dtypes,
            layouts=self.layouts if self.layouts is not None else self.tier.layouts,
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON-able dict; the tier by its name."""
        names = {"dtypes": self.dtypes, "layouts": self.layouts, "routes": self.routes}
        kept = {key: None if value is None else sorted(value) for key, value in names.items()}
        return {"tier": self.tier.name, "case": self.case, **kept}

    @staticmethod
    def from_json(d: dict[str, Any]) -> Selection:
        """Inverse of :meth:`to_json`."""
        kept = {key: None if d[key] is None else frozenset(d[key]) for key in ("dtypes", "layouts", "routes")}
        return Selection(tier=TIERS[d["tier"]], case=d["case"], **kept)


class Suite:
    """The matrix of one backend: what there is to run, and how a cell is run (in a child of the runner)."""

    def __init__(self, backend: Capabilities, selection: Selection, seed: int) -> None:
        torch.set_num_threads(1)  # before any fork, and so that the reference's sums do not depend on the machine
        self.backend = backend
        self.selection = selection
        self.corpus = reader.load()
        self.inventory: dict[str, Overload] = {o.name: o for o in inventory(backend.device)}
        self.collect_s = 0.0  # kept by whoever collects
        self.seed = seed
        self.tier = selection.narrowed()
        self._only = CellId.parse(selection.case.partition("#")[0])  # the one case asked for lies in this cell
        self._twins = Twins(self.corpus.value)
        self._judge: tuple[str, Judge] | None = None

    def recipe(self) -> dict[str, Any]:
        """What :meth:`made_from` makes the same suite from in another process; JSON-able."""
        return {"backend": self.backend.asked, "selection": self.selection.to_json(), "seed": self.seed}

    @staticmethod
    def made_from(recipe: dict[str, Any]) -> Suite:
        """Inverse of :meth:`recipe`. Raises as finding the backend and loading the corpus do."""
        selection = Selection.from_json(recipe["selection"])
        return Suite(backends.find(recipe["backend"]), selection, recipe["seed"])

    def prepare(self) -> None:
        """Load what each child would load for itself, before the first is forked. Does not touch the device."""
        self.corpus.load_values()
        poison(1, "bool").clone()  # torch sets itself up in the first operator that a process calls

    def bring_up(self, progress: Progress) -> str:
        """What is broken of the primitives that every comparison stands on; to be run in a child."""
        return bringup.failing(self.backend, lambda index: progress.note(index, ""))

    def primitives(self) -> list[str]:
        """What they are called, in the order they are tried."""
        return bringup.names()

    def lane(self) -> str:
        """The lane that this process is, e.g. ``mydev-torch2.8-malloc-release``."""
        build = str(self.backend.build_info().get("build_type", "release")).lower()
        return lane_name(self.backend.name, _short(torch.__version__), self.backend.environment(), build)

    def manifest(self, lane: str, cells: Collection[str], complete: bool, arguments: tuple[str, ...]) -> Manifest:
        """What is known of the run before its first cell; ``cells`` are the ids of those collected."""
        info = self.backend.build_info()
        return Manifest(
            lane=lane, backend=self.backend.name, collected=len(cells), complete=complete, torch=torch.__version__,
            environment=self.backend.environment(), build=str(info.get("build_type", "release")).lower(),
            python=platform.python_version(), compiler=str(info.get("compiler", "")),
            backend_commit=str(info.get("commit", "")), corpus=self.corpus.hash, tier=self.selection.tier.name,
            seed=self.seed, arguments=arguments, cells=resume.fingerprint(cells), run=run_name(lane), cpu=cpu_model(),
            torch_commit=str(torch.version.git_version or ""),
        )  # fmt: skip

    def schemas(self) -> dict[str, tuple[str, str]]:
        """Overloads of the corpus that this torch has not, or otherwise: (schema recorded, schema here or "")."""
        here = {name: overload.schema for name, overload in self.inventory.items()}
        recorded = {name: self.corpus.schemas[name] for name in self.corpus.overloads}
        return {name: (told, here.get(name, "")) for name, told in recorded.items() if here.get(name) != told}

    def targets(self) -> list[Target]:
        """The overloads that coverage is counted over, each with the reason why it is out of reach, if it is."""
        return [
            Target(o.name, o.route.value, "" if o.name in self.corpus.overloads else self._unreached(o.name))
            for o in self.inventory.values()
            if o.is_target
        ]

    def _unreached(self, overload: str) -> str:
        return self.corpus.reasons.get(overload) or ops.facts(overload).cannot or "the corpus has no sample of it"

    def knows(self, case_id: str) -> bool:
        """Whether the matrix has this case."""
        cell = CellId.parse(case_id.partition("#")[0])
        if cell is None or cell.overload not in self.inventory or cell not in self.cells(cell.overload):
            return False
        return case_id in self.case_ids(cell)

    def unknown_case(self, case_id: str) -> str:
        """What to say about a case that the matrix does not have: which part of its id is unknown, and what is near."""
        cell = CellId.parse(case_id.partition("#")[0])
        if cell is None:
            like = "ops/masking.py::masked_fill_.Scalar[float32-expanded]#sample@self"
            return f"{case_id!r} is not a case's id; one looks like {like}"
        if cell.overload not in self.corpus.overloads:
            return unknown("overload", cell.overload, self.corpus.overloads)
        known = self.cells(cell.overload)
        if cell not in known:
            return unknown("cell", str(cell), map(str, known))
        return unknown("case", case_id, [case.id for case in _cases(self, cell)])

    def family(self, name: str) -> list[CellId]:
        """The cells of one family that the selection takes, by overload; of a case asked for, its cell alone."""
        if self._only:
            return [self._only] if self._only.family == name else []
        return [cell for o in self.overloads() if ops.facts(o).family == name for cell in self.cells(o)]

    def overloads(self) -> list[str]:
        """Overloads that have samples, exist in this torch, and are served by a route asked for."""
        routes = self.selection.routes
        found = (o for o in self.corpus.overloads if o in self.inventory)
        return [o for o in found if routes is None or self.inventory[o].route.value in routes]

    def cells(self, overload: str) -> list[CellId]:
        """The cells of one overload in the tier asked for; none in which even the CPU's kernel does harm."""
        facts = ops.facts(overload)
        found = cases_.cells(facts.family, overload, self.corpus.samples(overload), self.tier)
        return [c for c in found if c.layout not in facts.overruns and c.dtype not in facts.undefined_in]

    def cases(self, cell: CellId) -> list[Case]:
        """The cases of one cell; the one asked for alone if one was."""
        wanted, found = self.selection.case, _cases(self, cell)
        return [c for c in found if c.id == wanted] if wanted else found

    def case_ids(self, cell: CellId) -> list[str]:
        """The ids of a cell's cases, in the order they run."""
        return [case.id for case in self.cases(cell)]

    def route(self, cell: CellId) -> str:
        """How the backend serves the cell's overload."""
        return str(self.inventory[cell.overload].route)

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        """Run the cell's cases from index ``first`` up to ``stop``, in this process. Never raises for what an op does.

        Returns what was observed, and the index to go on from in a fresh process, where a case that is not defined
        may have damaged this one.
        """
        warnings.simplefilter("ignore")  # what an op warns of (prototype dtypes, deprecations) is not judged
        tally = _Tally(cell, self.route(cell))
        judge = self._judge_of(cell.overload)
        for index, case in enumerate(self.cases(cell)[first:stop], start=first):
            self._run_case(judge, case, index, progress, tally)
            if tally.tainted:
                return tally.observation(), index + 1
        return tally.observation(), None

    def reference(self, cell: CellId, index: int) -> None:
        """Run the CPU side alone of one case, several times over other leftovers in memory."""
        case = self.cases(cell)[index]
        for _ in range(3):
            self._judge_of(cell.overload).reference_is_sound(case)
            host_heap.shake()

    def _run_case(self, judge: Judge, case: Case, index: int, progress: Progress, tally: _Tally) -> None:
        tally.cases += 1
        try:
            judgement = judge.judge(case, lambda phase: progress.note(index, phase))
        except Exception:  # noqa: BLE001  # the suite's own fault: said so, and the next case runs
            tally.broke(CaseFailure(case.id, "", f"the suite itself failed\n{traceback.format_exc()}"))
            return
        tally.raw_ns += judgement.raw_ns
        if judgement.skipped:
            tally.reason = tally.reason or judgement.skipped
            tally.tainted |= judgement.tainted
            return
        tally.compared += 1
        if judgement.mismatches:
            text = describe.failure(case, judgement.mismatches, tally.route, self.backend.name)
            worst = judgement.mismatches[0]
            tally.failed(CaseFailure(case.id, worst.check.value, text, worst.figures))

    def _judge_of(self, overload: str) -> Judge:
        if self._judge is None or self._judge[0] != overload:
            route = self.inventory[overload].route
            judge = Judge(self._twins, self.backend, call_of(overload), route, rules_of(overload), self.seed)
            self._judge = (overload, judge)
        return self._judge[1]


def _short(version: str) -> str:
    """``2.8`` of ``2.8.0+cu128``."""
    return ".".join(version.partition("+")[0].split(".")[:2])


@lru_cache(maxsize=8)
def _cases(suite: Suite, cell: CellId) -> list[Case]:
    pointwise = "pointwise" in suite.inventory[cell.overload].tags
    return cases_.cases(cell, suite.corpus.samples(cell.overload), suite.tier, pointwise)


class _Tally:
    """Adds up the cases of one cell."""

    def __init__(self, cell: CellId, route: str) -> None:
        self.cell = cell
        self.route = route
        self.compared = 0
        self.raw_ns = 0
        self.cases = 0
        self.tainted = False
        self.reason = ""  # why the first case that could not be compared could not
        self._failures: list[CaseFailure] = []
        self._failing = 0
        self._broken = False
        self._wall = time.perf_counter_ns()
        self._cpu = time.process_time_ns()

    def failed(self, failure: CaseFailure) -> None:
        self._failing += 1
        if len(self._failures) < FAILURES_KEPT:
            self._failures.append(failure)

    def broke(self, failure: CaseFailure) -> None:
        self._broken = True
        self.failed(failure)

    def observation(self) -> Observation:
        if self._broken:
            status = Status.ERROR
        elif self._failing:
            status = Status.FAIL
        else:
            status = Status.PASS if self.compared else Status.UNSUPPORTED
        return Observation(
            self.cell,
            self.route,
            status,
            cases=self.cases,
            failures=tuple(self._failures),
            reason=self.reason if status is Status.UNSUPPORTED else "",
            wall_ns=time.perf_counter_ns() - self._wall,
            cpu_ns=time.process_time_ns() - self._cpu,
            raw_ns=self.raw_ns,
            compared=self.compared,
        )
