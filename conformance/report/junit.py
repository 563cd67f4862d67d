"""Runs as JUnit XML: a test for each overload and dtype, and a test for each cell that is not fine.

A cell is fine if it was reached, does not fail, and is not expected to fail. No service accepts a file with 250,000
tests, of which nearly all say the same. So the fine cells of an overload in a dtype are one test, named by the dtype.
Every other cell is a test of its own, named by dtype and layout. A test of a scenario has the name of the cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.explain import describe
from conformance.records import Observation
from conformance.results.expectations import CellVerdict, KnownFailure, Verdict, judge
from conformance.results.store import Manifest
from conformance.results.store.manifest import began
from conformance.support.markup import xml
from conformance.vocabulary import Status

DETAILED = 20  # cells of an overload whose whole message is given

_TOLD = ("backend", "torch", "environment", "build", "python", "compiler", "backend_commit", "corpus", "tier", "cpu")
_ERRORS = frozenset({Status.ERROR, Status.NOT_REACHED})


@dataclass(frozen=True, slots=True)
class _Test:
    overload: str
    name: str
    seconds: float
    outcome: str = ""  # failure, error or skipped; "" if it passed
    kind: str = ""
    first: str = ""  # on one line
    message: str = ""  # the whole message; "" if ``first`` is enough

    def lines(self, classname: str) -> list[str]:
        head = f'  <testcase classname="{xml(classname)}" name="{xml(self.name)}" time="{self.seconds:.3f}"'
        if not self.outcome:
            return [f"{head}/>"]
        body = f'    <{self.outcome} type="{xml(self.kind)}" message="{xml(self.first)}"'
        text = f">{xml(self.message)}</{self.outcome}>" if self.message else "/>"
        return [f"{head}>", body + text, "  </testcase>"]


def junit(runs: Iterable[tuple[Manifest, Iterable[Observation], Sequence[KnownFailure]]]) -> str:
    """Return the text of the file. ``runs``: each run's manifest, observations and known failures."""
    suites = [(manifest, _tests(observations, known, manifest)) for manifest, observations, known in runs]
    everything = [test for _, tests in suites for test in tests]
    return "\n".join([
        '<?xml version="1.0" encoding="utf-8"?>',
        f"<testsuites {_counts(everything)}>",
        *(line for manifest, tests in suites for line in _suite(manifest, tests)),
        "</testsuites>", "",
    ])  # fmt: skip


def _suite(manifest: Manifest, tests: Sequence[_Test]) -> list[str]:
    at = began(manifest.run)
    stamp = f' timestamp="{at.replace(tzinfo=None).isoformat()}"' if at else ""
    return [
        f'<testsuite name="{xml(manifest.series)}" {_counts(tests)}{stamp}>',
        "  <properties>",
        *(f'    <property name="{name}" value="{xml(str(getattr(manifest, name)))}"/>' for name in _TOLD),
        "  </properties>",
        *(line for test in tests for line in test.lines(f"{manifest.backend}.{test.overload}")),
        "</testsuite>",
    ]


def _counts(tests: Sequence[_Test]) -> str:
    count = {kind: sum(t.outcome == kind for t in tests) for kind in ("failure", "error", "skipped")}
    return (
        f'tests="{len(tests)}" failures="{count["failure"]}" errors="{count["error"]}" skipped="{count["skipped"]}" '
        f'time="{sum(t.seconds for t in tests):.3f}"'
    )


def _tests(observations: Iterable[Observation], known: Sequence[KnownFailure], manifest: Manifest) -> list[_Test]:
    fine: dict[tuple[str, str], list[Observation]] = defaultdict(list)
    other: dict[str, list[tuple[Observation, CellVerdict]]] = defaultdict(list)
    for o in observations:
        judged = judge(o, known, manifest.lane)
        if judged.verdict is Verdict.AS_EXPECTED and o.status is not Status.NOT_REACHED:
            fine[o.cell.overload, o.cell.dtype or o.cell.name].append(o)
        else:
            other[o.cell.overload].append((o, judged))
    tests = [_together(overload, name, cells) for (overload, name), cells in fine.items()]
    for found in other.values():
        of = sorted(found, key=lambda pair: str(pair[0].cell))
        shown = manifest.backend_for_commands
        tests += [_alone(o, judged, shown if n < DETAILED else "") for n, (o, judged) in enumerate(of)]
    return sorted(tests, key=lambda t: (t.overload, t.name))


def _together(overload: str, name: str, cells: Sequence[Observation]) -> _Test:
    """Return the test of the fine cells. It is skipped if none of them passed."""
    seconds = sum(o.wall_ns for o in cells) / 1e9
    if any(o.status is Status.PASS for o in cells):
        return _Test(overload, name, seconds)
    return _Test(overload, name, seconds, "skipped", str(Status.UNSUPPORTED), cells[0].reason)


def _alone(o: Observation, judged: CellVerdict, backend: str) -> _Test:
    """Return the test of one cell. A failure has the whole message with commands for ``backend``, unless that is ""."""
    overload, name = o.cell.overload, o.cell.name if o.cell.is_scenario else f"{o.cell.dtype}-{o.cell.layout}"
    if judged.verdict is Verdict.EXPECTED_FAILURE:
        reason = judged.rule.reason if judged.rule else ""
        return _Test(overload, name, o.wall_ns / 1e9, "skipped", "expected failure", reason)
    if judged.verdict is Verdict.UNEXPECTED_PASS:
        text = f"passed, although a rule expects it to fail: {judged.rule}"
        return _Test(overload, name, o.wall_ns / 1e9, "failure", "unexpected pass", text)
    kind = ", ".join(sorted({f.check for f in o.failures if f.check})) or o.signal or str(o.status)
    outcome = "error" if o.status in _ERRORS else "failure"
    message = describe.observation(o, backend) if backend and o.failures else ""
    return _Test(overload, name, o.wall_ns / 1e9, outcome, kind, describe.excerpt(o), message)
