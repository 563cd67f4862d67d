"""The ends of a search, from stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from conformance.bisect import ends
from conformance.bisect.points import Point
from conformance.records import FAILURES_KEPT, Observation
from conformance.results import store
from conformance.results.store.manifest import run_name
from conformance.vocabulary import Status
from tests.records import failure, manifest, observed

CELL = "ops/masking.py::neg[float32-contiguous]"
CASE, OTHER = f"{CELL}#a", f"{CELL}#b"
TORCHES = [Point(v, f"torch=={v}.0", torch=f"torch=={v}.0") for v in ("2.7", "2.8", "2.9", "2.10")]
COMMITS = [Point(c * 10, f"change {c}", torch="torch==2.8.0", commit=c * 40) for c in "abcd"]

_tokens = count()


def said(failing: tuple[str, ...] = (), status: Status = Status.FAIL) -> Observation:
    """Return an observation of the cell in which these cases fail."""
    failures = tuple(failure(case) for case in failing)
    return replace(observed("neg", status=status if failing else Status.PASS, checks=()), failures=failures)


def keep(results: Path, *seen: Observation, **told: object) -> None:
    """Store a closed run of ``seen`` and a passing cell of ``abs``. ``told`` overrides facts of the manifest."""
    lane = str(told.get("lane", "demo-torch2.8-malloc-release"))
    name = run_name(lane, token=f"{next(_tokens):06x}")
    with store.Writer(results / lane, manifest(**{**told, "run": name, "lane": lane})) as writer:
        for observation in (*seen, observed("abs")):
            writer.append(observation)
        writer.finish({})


def of_torch(results: Path, outcomes: Mapping[str, tuple[str, ...]]) -> None:
    """Store a run for each version, with the cases that failed in it."""
    for version, failing in outcomes.items():
        keep(results, said(failing), torch=f"{version}.0+cpu", lane=f"demo-torch{version}-malloc-release")


def bounds(results: Path, cases: tuple[str, ...] = (CASE,), bad: int | None = None) -> tuple[int | None, int | None]:
    found, left_out = ends.recorded(results, cases, "demo")
    assert left_out == []
    return ends.from_runs(found, cases, TORCHES).bounds(bad)


def test_the_ends_are_the_newest_passing_and_the_oldest_failing_version(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": (), "2.9": (CASE,), "2.10": (CASE,)})
    assert bounds(tmp_path) == (1, 2)


def test_a_version_that_nobody_ran_lies_between_the_ends(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.10": (CASE,)})
    assert bounds(tmp_path) == (0, 3)


def test_an_old_failure_that_was_repaired_is_not_the_bad_end(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (CASE,), "2.8": (), "2.10": (CASE,)})
    assert bounds(tmp_path) == (1, 3)


def test_without_a_failure_no_end_is_known_and_without_a_pass_no_good_end(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.9": ()})
    assert bounds(tmp_path) == (None, None)
    of_torch(tmp_path, {"2.9": (CASE,), "2.10": (CASE,)})
    assert bounds(tmp_path) == (None, 2)


def test_a_bad_end_that_is_given_gets_the_newest_that_passed_before_it(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": (CASE,), "2.9": (), "2.10": (CASE,)})
    assert bounds(tmp_path, bad=1) == (0, 1)
    assert bounds(tmp_path, bad=3) == (2, 3)


def test_every_case_has_to_pass_at_the_good_end_and_to_fail_at_the_bad_one(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": (OTHER,), "2.9": (CASE,), "2.10": (CASE, OTHER)})
    assert bounds(tmp_path, (CASE, OTHER)) == (0, 3)


def test_a_version_fails_where_one_of_its_lanes_does(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": ()})
    keep(tmp_path, said((CASE,)), torch="2.8.0", environment="guard", lane="demo-torch2.8-guard-release")
    assert bounds(tmp_path) == (0, 1)


def test_of_a_lane_the_latest_run_that_has_the_case_counts(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": ()})
    keep(tmp_path, said((CASE,)))
    keep(tmp_path)  # a run of other cells only
    assert bounds(tmp_path) == (0, 1)
    keep(tmp_path, said())
    assert bounds(tmp_path) == (None, None)


def test_a_cell_that_crashed_says_nothing_of_its_other_cases(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": ()})
    keep(tmp_path, said((CASE,), Status.CRASH))
    assert bounds(tmp_path) == (0, 1)
    assert bounds(tmp_path, (OTHER,)) == (None, None)


def test_an_unnamed_case_of_a_failing_cell_passed_if_all_failures_are_kept(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (OTHER,), "2.9": (CASE,)})
    assert bounds(tmp_path) == (0, 2)
    many = tuple(f"{CELL}#{i}" for i in range(FAILURES_KEPT))
    of_torch(tmp_path, {"2.8": many})
    assert bounds(tmp_path) == (0, 2)


def test_runs_of_another_backend_or_a_nightly_torch_are_no_points(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": ()})
    keep(tmp_path, said((CASE,)), backend="another", lane="another-torch2.8-malloc-release")
    keep(tmp_path, said((CASE,)), torch="2.8.0.dev20260101", lane="demo-torchnightly-malloc-release")
    assert bounds(tmp_path) == (None, None)


def test_the_runs_of_a_backend_are_found_by_its_module_and_device(tmp_path: Path) -> None:
    keep(tmp_path, said((CASE,)), backend_option="my_backend:demo")
    for name, number in (("my_backend:demo", 1), ("demo", 1), ("other:demo", 0)):
        assert len(ends.recorded(tmp_path, (CASE,), name)[0]) == number


def test_an_environment_that_is_asked_for_leaves_the_others_out(tmp_path: Path) -> None:
    keep(tmp_path, said((CASE,)), environment="guard", lane="demo-torch2.8-guard-release")
    keep(tmp_path, said(), environment="malloc")
    (run,), _ = ends.recorded(tmp_path, (CASE,), "demo", "guard")
    assert run.manifest.environment == "guard"
    assert [str(o.cell) for o in run.observations] == [CELL]


def test_a_run_that_was_cut_off_counts_where_its_lane_has_no_other(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": ()})
    lane = "demo-torch2.9-malloc-release"
    with store.Writer(tmp_path / lane, manifest(torch="2.9.0", lane=lane, run=run_name(lane))) as writer:
        writer.append(said((CASE,)))
    assert bounds(tmp_path) == (0, 2)


@pytest.mark.parametrize(("commits", "expected"), [("ac", (0, 2)), ("ad", (0, 3)), ("cd", (None, 2))])
def test_commits_are_known_by_what_the_backend_says_that_it_was_built_from(
    tmp_path: Path, commits: str, expected: tuple[int | None, int]
) -> None:
    for commit in commits:
        keep(tmp_path, said((CASE,) if commit in "cd" else ()), backend_commit=commit * 12)
    found, _ = ends.recorded(tmp_path, (CASE,), "demo")
    assert ends.from_runs(found, (CASE,), COMMITS).bounds() == expected


@pytest.mark.parametrize("told", [{"backend_commit": "c" * 12 + "-dirty"}, {"backend_commit": ""}, {"torch": "2.9.0"}])
def test_a_build_of_no_commit_or_for_another_torch_says_nothing_of_commits(
    tmp_path: Path, told: dict[str, str]
) -> None:  # fmt: skip
    keep(tmp_path, said((CASE,)), **{"backend_commit": "c" * 12, **told})
    found, _ = ends.recorded(tmp_path, (CASE,), "demo")
    assert ends.from_runs(found, (CASE,), COMMITS).failing == ()


def test_a_run_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": (), "2.9": (CASE,)})
    older, damaged, _ = sorted((tmp_path / "runs").iterdir(), key=lambda d: d.name.partition("torch")[2])
    (older / "manifest.json").write_text('{"format": "op-conformance run", "version": 99}')
    (damaged / "observations.parquet").write_bytes(b"PAR1")
    found, left_out = ends.recorded(tmp_path, (CASE,), "demo")
    assert [run.manifest.torch for run in found] == ["2.9.0+cpu"]
    assert len(left_out) == 2
    assert "format version 99" in left_out[0]


@pytest.mark.parametrize(
    "part", [{"tier": "smoke"}, {"arguments": ("--case", OTHER)}, {"arguments": (f"--case={OTHER}",)}]
)
def test_a_pass_of_a_cell_s_other_cases_is_no_result_of_a_case(part: dict[str, object], tmp_path: Path) -> None:
    of_torch(tmp_path, {"2.7": (), "2.8": (CASE,)})
    keep(tmp_path, said(), torch="2.8.0+cpu", lane="demo-torch2.8-malloc-release", **part)
    assert bounds(tmp_path) == (0, 1)
    keep(tmp_path, said((CASE,)), torch="2.7.0+cpu", lane="demo-torch2.7-malloc-release", **part)
    assert bounds(tmp_path) == (None, 0)


def test_without_results_there_are_no_ends(tmp_path: Path) -> None:
    assert bounds(tmp_path / "nowhere") == (None, None)
