"""A cluster run on a fake cluster: the stored results of each lane, and the end of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from rich.console import Console

from conformance.cluster import accounting, planning
from conformance.cluster.accounting import LaneResults
from conformance.cluster.model import ClusterError, Ended, News, Order, State
from conformance.cluster.progress import Row, View
from conformance.cluster.session import Session
from conformance.lanes import jobs, matrix
from conformance.lanes.matrix import Build, Environment, Lane, Resources, Torch
from conformance.records import Observation
from conformance.results import resume
from conformance.results.ledger import Ledger
from conformance.results.shards import Split
from conformance.results.store import Closed, Manifest, journal, runs
from conformance.results.store.manifest import as_shard, run_name
from conformance.results.summary import Target
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status
from tests.records import manifest, observed

CELLS = (observed("cat"), observed("mm"), observed("neg"), observed("relu"))
LANE = Lane("demo", Torch("2.8", "torch==2.8.0", "", "full"), Environment("malloc", ()), Build("release"))
LISTING = planning.order_of(LANE, "torch-2.8", "/checkout", "token", (), reuse=False)
LISTED = Ended(State.ENDED, "a", cells=tuple(str(o.cell) for o in CELLS))


def manifest_of(shard: str, seen: Sequence[Observation], at: datetime | None = None) -> Manifest:
    ids = [str(o.cell) for o in seen]
    words = ("--pyargs", "conformance", "--shard", shard, "-rN")
    told = manifest(run=run_name(LANE.name, at), collected=len(ids), cells=resume.fingerprint(ids), arguments=words)
    return as_shard(told, shard, "")


def ended(scratch: Path, shard: str, seen: Sequence[Observation], at: datetime | None = None) -> Ended:
    """Return the result of a node that ran a shard with these observations."""
    told = manifest_of(shard, seen, at)
    ledger = Ledger(scratch / LANE.name, told, [o.cell for o in seen], [Target("mm", "native")], ())
    for o in seen:
        ledger.enter(o)
    ledger.close(0.5, 2.0, Split(shard, len(CELLS), resume.fingerprint(str(o.cell) for o in CELLS)))
    return Ended(State.ENDED, "a", run=told.run, files=runs.files(scratch / runs.RUNS / told.run))


def lines(shard: str, seen: Sequence[Observation], of: Sequence[Observation]) -> tuple[str, ...]:
    """Return the lines of the journal of a shard that is in the middle of its cells."""
    head = {"format": journal._FORMAT, "version": runs.VERSION, **asdict(manifest_of(shard, of))}  # noqa: SLF001 - as its writer
    return (json.dumps(head), *(json.dumps(o.to_json()) for o in seen))


class Played:
    """A fake cluster. Each wait takes the next of ``looks``: the news and the ends of orders, by shard."""

    def __init__(self, *looks: tuple[list[News], dict[str, Ended]], lacking: str = "") -> None:
        self._looks = list(looks)
        self._orders: dict[str, Order] = {}
        self._lacking = lacking
        self._ended: dict[str, Ended] = {}
        self.stopped = False

    def lacking(self, lane: str, needed: Resources) -> str:
        return self._lacking

    def submit(self, order: Order, durations: Mapping[str, bytes]) -> None:
        self._orders[order.shard] = order

    def wait(self, seconds: float) -> list[tuple[Order, Ended]]:
        if not self._looks:
            if self.stopped or self._lacking:
                return []
            raise KeyboardInterrupt
        self._news, self._ended = self._looks.pop(0)
        return [(self._orders[shard], end) for shard, end in self._ended.items()]

    def news(self) -> Sequence[News]:
        news, self._news = self._news, []
        return news

    _news: Sequence[News] = ()

    def stop(self) -> None:
        self.stopped = True


class Told(View):
    """A view that keeps the lines that the user reads."""

    def __init__(self) -> None:
        super().__init__(Console(), [])
        self.lines: list[str] = []

    def tell(self, line: str) -> None:
        self.lines.append(line)


def run(cluster: Played, results: Path, left: Sequence[Closed] = ()) -> tuple[Exit, str]:
    plan = planning.plan(LISTING, jobs.split([(LANE, "")], 2), "", left)
    view, row = Told(), Row(LANE.name, plan.shards)
    code = Session(cluster, [LaneResults(plan, results)], view, [row]).run([LISTING], {})
    return code, "\n".join(view.lines)


def only(results: Path) -> tuple[Closed, dict[str, Observation]]:
    (name,) = runs.names(results)
    closed = runs.opened(results / runs.RUNS / name)
    return closed, {o.cell.overload: o for o in runs.load(closed)}


def news(shard: str, attempt: int, *words: str) -> News:
    return News(replace(LISTING, shard=shard).key, attempt, "a", words)


def test_the_shards_are_merged_as_those_of_a_workflow(tmp_path: Path) -> None:
    one, two = ended(tmp_path / "1", "1/2", CELLS[:2]), ended(tmp_path / "2", "2/2", CELLS[2:])
    code, text = run(Played(([], {"": LISTED, "1/2": one}), ([], {"2/2": two})), tmp_path)
    closed, found = only(tmp_path)
    assert (code, closed.ended, len(found)) == (Exit.OK, True, 4)
    assert "of 2 shards" in text


def test_what_came_of_an_attempt_that_died_is_not_counted_again(tmp_path: Path) -> None:
    one, two = ended(tmp_path / "1", "1/2", CELLS[:2]), ended(tmp_path / "2", "2/2", CELLS[2:])
    before = [news("1/2", 1), news("1/2", 1, *lines("1/2", CELLS[:1], CELLS[:2])), news("1/2", 2)]
    code, text = run(Played((before, {"": LISTED}), ([], {"1/2": one, "2/2": two})), tmp_path)
    closed, _ = only(tmp_path)
    assert (code, closed.by_status["pass"]) == (Exit.OK, 4)
    assert "1/2: attempt 2 on a; the process of the one before died" in text


def test_after_an_interruption_every_cell_is_accounted_for(tmp_path: Path) -> None:
    one = ended(tmp_path / "1", "1/2", CELLS[:2])
    streamed = [news("2/2", 1), news("2/2", 1, *lines("2/2", CELLS[2:3], CELLS[2:]))]
    code, text = run(Played((streamed, {"": LISTED, "1/2": one})), tmp_path)
    closed, found = only(tmp_path)
    assert (code, closed.ended, closed.manifest.collected) == (Exit.INTERRUPTED, False, 4)
    assert {name: o.status for name, o in found.items() if o.status is not Status.PASS} == {"relu": Status.NOT_REACHED}
    assert found["relu"].reason == "the run was interrupted"
    assert "run again with --resume" in text


def test_an_interrupted_lane_can_be_resumed_by_pytest(tmp_path: Path) -> None:
    one = ended(tmp_path / "1", "1/2", CELLS[:2])
    run(Played(([], {"": LISTED, "1/2": one})), tmp_path)
    now = replace(manifest_of("1/2", CELLS), shard="", split_by="", run=run_name(LANE.name))
    before, seen = resume.observed(tmp_path / LANE.name, now)
    assert before is not None
    resume.check(tmp_path / LANE.name, before, now)
    assert sorted(o.cell.overload for o in seen.values()) == ["cat", "mm"]


def test_shards_that_ended_do_not_run_again(tmp_path: Path) -> None:
    one, two = ended(tmp_path / "1", "1/2", CELLS[:2]), ended(tmp_path / "2", "2/2", CELLS[2:])
    run(Played(([], {"": LISTED, "1/2": one})), tmp_path)
    left = planning.left(accounting.unmerged(tmp_path), LISTING)
    cluster = Played(([], {"": LISTED, "2/2": two}))
    code, _ = run(cluster, tmp_path, left)
    assert code == Exit.OK
    assert sorted(cluster._orders) == ["", "2/2"]  # noqa: SLF001 - what was submitted
    assert runs.opened(tmp_path / runs.RUNS / runs.names(tmp_path)[-1]).manifest.collected == 4


def test_a_shard_that_failed_leaves_its_reason_with_its_cells(tmp_path: Path) -> None:
    one = ended(tmp_path / "1", "1/2", CELLS[:2])
    lost = Ended(State.FAILED, "b", "node b: `nox -s torch-2.8` failed")
    code, text = run(Played(([], {"": LISTED, "1/2": one, "2/2": lost})), tmp_path)
    assert code == Exit.INTERRUPTED
    assert {o.reason for o in only(tmp_path)[1].values() if o.status is Status.NOT_REACHED} == {lost.reason}
    assert "2/2 failed: node b: `nox -s torch-2.8` failed" in text


def test_a_lane_without_any_record_says_why(tmp_path: Path) -> None:
    lost = Ended(State.FAILED, "b", "node b: no compiler")
    code, text = run(Played(([], {"": lost, "1/2": lost, "2/2": lost})), tmp_path)
    assert (code, text.splitlines()[-1]) == (Exit.INTERRUPTED, f"{LANE.name}: no results: node b: no compiler")


def test_a_lane_that_no_node_can_run_any_more_is_given_up(tmp_path: Path) -> None:
    one = ended(tmp_path / "1", "1/2", CELLS[:2])
    code, _ = run(Played(([], {"": LISTED, "1/2": one}), lacking="a shard needs npu 1"), tmp_path)
    found = only(tmp_path)[1]
    assert (code, found["neg"].reason) == (Exit.INTERRUPTED, "a shard needs npu 1")


def test_a_damaged_result_is_not_stored(tmp_path: Path) -> None:
    one, two = ended(tmp_path / "1", "1/2", CELLS[:2]), ended(tmp_path / "2", "2/2", CELLS[2:])
    damaged = replace(two, files={**two.files, runs.PARQUET: two.files[runs.PARQUET][:-1]})
    code, text = run(Played(([], {"": LISTED, "1/2": one, "2/2": damaged})), tmp_path)
    assert code == Exit.INTERRUPTED
    assert "the file was changed" in text


@pytest.mark.parametrize("word", ["--shard", "--resume", "-n2", "--results=x", "--case"])
def test_arguments_that_a_cluster_run_sets_are_refused(word: str) -> None:
    with pytest.raises(ClusterError, match="cannot be given to `conformance run`"):
        planning.check_arguments(["-k", "mm", word])


def test_resources_of_a_lane_come_from_its_matrix(tmp_path: Path) -> None:
    text = (
        'backend = "demo"\nproject = "p"\nmodule = "m"\n[[torch]]\nversion = "2.8"\n[environments.malloc]\n'
        "[resources]\ncpus = 2\ndevices = {npu = 1}\n[builds.release]\n[builds.asan]\nresources = {memory_mb = 4096}\n"
    )
    (tmp_path / "demo.toml").write_text(text)
    release, asan = matrix.load(tmp_path / "demo.toml").builds
    assert release.resources == Resources(2, 2048, (("npu", 1),))
    assert asan.resources == Resources(2, 4096, (("npu", 1),))
    (tmp_path / "demo.toml").write_text(text.replace("cpus = 2", "cpus = 0"))
    with pytest.raises(ValueError, match=r"resources\.cpus: expected a positive integer, got 0"):
        matrix.load(tmp_path / "demo.toml")


def test_after_an_interruption_only_the_latest_attempt_counts(tmp_path: Path) -> None:
    one = ended(tmp_path / "1", "1/2", CELLS[:2])
    streamed = [
        news("2/2", 1), news("2/2", 1, *lines("2/2", CELLS[2:], CELLS[2:])),
        news("2/2", 2), news("2/2", 2, *lines("2/2", CELLS[3:], CELLS[2:])),
    ]  # fmt: skip
    run(Played((streamed, {"": LISTED, "1/2": one})), tmp_path)
    closed, found = only(tmp_path)
    assert closed.manifest.collected == sum(closed.by_status.values()) == 4
    assert {name for name, o in found.items() if o.status is Status.NOT_REACHED} == {"neg"}


def test_shards_of_an_earlier_run_that_ended_are_not_taken_for_the_interrupted_one(tmp_path: Path) -> None:
    night, next_night = datetime(2026, 1, 1, tzinfo=timezone.utc), datetime(2026, 1, 2, tzinfo=timezone.utc)
    one = ended(tmp_path / "1", "1/2", CELLS[:2], night)
    two = ended(tmp_path / "2", "2/2", CELLS[2:], night + timedelta(seconds=1))
    run(Played(([], {"": LISTED, "1/2": one, "2/2": two})), tmp_path)
    assert accounting.unmerged(tmp_path) == []
    again = ended(tmp_path / "3", "1/2", CELLS[:2], next_night)
    run(Played(([], {"": LISTED, "1/2": again})), tmp_path)
    assert [closed.name for closed in planning.left(accounting.unmerged(tmp_path), LISTING)] == [again.run]
