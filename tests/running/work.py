"""Work for the runner: cases that do as their names say."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from conformance.records import (
    CaseFailure,
    Mismatch,
    Observation,
    PlacedArgument,
)
from conformance.running.late_errors import late_error
from conformance.running.progress import Progress
from conformance.running.protocol import Tried
from conformance.running.runner import Runner
from conformance.vocabulary import CellId, Check, Fact, Status
from tests.hangs import Hangs

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "expanded")
OTHER = CellId("masking", "masked_fill_.Scalar", "float32", "contiguous")


class Work:
    """Cases that do as their names say."""

    def __init__(self, *cases: str, route: str = "native") -> None:
        self._cases = cases
        self._route = route
        self.broken: dict[int, str] = {}
        self.lacking: tuple[str, ...] = ()
        self.flushes: dict[str, str] = {}  # dtype that flushes subnormals → the device's answer
        self.kept: tuple[str, ...] = ()
        self.preceded: tuple[str, ...] = ()
        self.pending = ""  # an error of late work
        self.settles = False
        self.prepared_for_doubts = 0
        self.hangs: Hangs | None = None

    def case_ids(self, cell: CellId) -> list[str]:
        return [f"{cell}#{name}" for name in self._cases]

    def arguments(self, cell: CellId, index: int) -> tuple[PlacedArgument, ...]:
        return (PlacedArgument("self", text=self._cases[index]),)

    def route(self, cell: CellId) -> str:
        return self._route

    def reference(self, cell: CellId, index: int) -> bool:
        if self._cases[index] in ("cpu dies", "reference dies"):
            ctypes.string_at(0)
        return True

    def checks(self, cell: CellId, index: int) -> list[str]:
        observation, _ = self.run(cell, index, Progress(), index + 1)
        return [f.check for f in observation.failures]

    def precede(self, ids: Sequence[str]) -> None:
        self.preceded = tuple(ids)

    def kernels(self, cell: CellId, index: int, *, on_cpu: bool) -> list[str]:
        if self._cases[index] == "fails and dies again":
            ctypes.string_at(0)
        return ["clone on cpu"] if on_cpu else ["clone", "copy_"]

    def settle(self) -> dict[str, str] | None:
        late, self.pending = self.pending, ""
        return {"type": "RuntimeError", "message": late} if late else None

    def settle_each_case(self) -> None:
        self.settles = True

    def print_stacks(self) -> None:
        os.write(2, b"frame #3: fill() + 0x1 (0x7 in /x/libmine.so)\n")
        os.write(2, b"frame #4: at::_ops::fill__Scalar::call(x) + 0x1 (0x7 in /x/libother.so)\n")

    def operators(self, calls: Sequence[str]) -> tuple[str, ...]:
        return tuple({"fill__Scalar": "fill_"}[call] for call in calls)

    def prepare(self) -> None:
        """Do nothing: there is nothing to load."""

    def prepare_for_doubts(self) -> None:
        self.prepared_for_doubts += 1

    def try_primitive(self, index: int) -> str:
        if self.broken.get(index) == "dies":
            ctypes.string_at(0)
        return self.broken.get(index, "")

    def without(self, primitives: Sequence[str]) -> None:
        self.lacking = tuple(primitives)

    def subnormal_dtypes(self) -> tuple[str, ...]:
        return "float16", "float32", "float64"

    def keeps_subnormals(self, dtype: str) -> bool:
        if self.flushes.get(dtype) == "dies":
            ctypes.string_at(0)
        return dtype not in self.flushes

    def count_on_subnormals(self, dtypes: Sequence[str]) -> None:
        self.kept = tuple(dtypes)

    def needs(self, cell: CellId, primitives: Sequence[str]) -> str:
        return ""

    def primitives(self) -> list[Tried]:
        return [
            Tried("allocate", "allocate (memory)", True), Tried("conj", "conj (resolves)", False),
            Tried("neg", "neg (resolves)", False),
        ]  # fmt: skip

    def run(
        self, cell: CellId, first: int, progress: Progress, stop: int | None = None
    ) -> tuple[Observation, int | None]:
        ran, failures = 0, []
        for index in range(first, len(self._cases) if stop is None else stop):
            what = self._cases[index]
            progress.note(index, "cpu" if what.startswith("cpu") else "device")
            if cell == CELL and what in ("dies", "cpu dies", "reference dies", "cpu dies of damage"):
                ctypes.string_at(0)
            if what == "hangs":
                assert self.hangs
                self.hangs.hang()
            if what == "breaks":
                raise ValueError(what)
            if what == "needs float64" and self.kept != ("float64",):
                ctypes.string_at(0)
            if what == "needs conj" and "conj" not in self.lacking:
                ctypes.string_at(0)
            ran += 1
            met, self.pending = self.pending, what if what.startswith("leaves an error") else ""
            if self.settles and (late := self.settle()):
                failures.append(CaseFailure(f"{cell}#{what}", (late_error(late),)))
            if met or what == "raises":
                error = {"type": "RuntimeError", "message": met or "its own"}
                facts = {"kind": Fact.ERRORS.value, "device": error, "cpu": None}
                failures.append(CaseFailure(f"{cell}#{what}", (Mismatch(Check.ERROR_PARITY, "", facts),)))
            if what.startswith("fails"):
                failures.append(CaseFailure(f"{cell}#{what}", (Mismatch(Check.VALUE, "result", {}),)))
            if what == "taints":
                return Observation(cell, "native", Status.PASS, ran, compared=ran), index + 1
        status = Status.FAIL if failures else Status.PASS
        return Observation(cell, "native", status, ran, tuple(failures), compared=ran), None


def observe(*cases: str, cell: CellId = CELL) -> Observation:
    runner = Runner(Work(*cases), 600)
    try:
        return runner.observe(cell)
    finally:
        runner.close()
