"""A run on a Ray cluster of two nodes, one of which is killed in the middle, next to a run on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance.cli import commands
from conformance.cluster import planning, ray_cluster
from conformance.cluster.accounting import LaneResults
from conformance.cluster.progress import Row, View
from conformance.cluster.session import Session
from conformance.lanes import jobs, matrix, process
from conformance.results.store import runs
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Status

pytest.importorskip("ray", reason="Ray is not installed; `nox -s cluster-tests` installs it")

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own warnings

CHECKOUT = Path(__file__).parents[2]
FEW = ("-k", "(masked_fill_ or roll or diag_embed) and float32")
# A plugin of pytest. After its third cell, the process of a node with the variable HOLD stops for good, and that of a
# node with the variable POISON kills the worker that started it, if it runs the first shard.
HOLDING = """
import os, signal, sys, time
reports = []
def pytest_runtest_logreport(report):
    reports.append(report)
    if "HOLD" in os.environ and len(reports) == 3:
        open(os.environ["HOLD"], "w").close()
        while True:
            time.sleep(1)
    if "POISON" in os.environ and len(reports) == 3 and "1/2" in sys.argv:
        os.kill(os.getppid(), signal.SIGKILL)
"""


class Nodes:
    """A Ray cluster: a head without processors, and the nodes that run tasks."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.added: Any = None
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 100 * 2**20})

    def add(self, **variables: str) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20, env_vars=variables)

    def kill(self, node: Any) -> None:
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    made.cluster.shutdown()


@pytest.fixture
def lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> matrix.Lane:
    """Return the lane of a checkout that has only a matrix and the environment of the suite's own main lane."""
    own = matrix.load_all(CHECKOUT / "matrices")[0]
    made = process.interpreter_file(CHECKOUT, process.environment_name(own, own.main_torch, own.builds[0], alone=True))
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/one.toml").write_text(
        f'backend = "{own.backend}"\nproject = "{own.project}"\nmodule = "{own.module}"\n'
        f'[[torch]]\nversion = "{own.main}"\n[environments.held]\nPYTHONPATH = "{tmp_path}"\n'
    )
    (tmp_path / "holding.py").write_text(HOLDING)
    monkeypatch.chdir(tmp_path)
    found = matrix.load(tmp_path / "matrices/one.toml")
    copy = process.interpreter_file(tmp_path, process.environment_name(found, found.main_torch, found.builds[0], True))
    copy.parent.mkdir()
    copy.write_text(made.read_text() if made.is_file() else sys.executable)
    return found.lanes()[0]


class Listening(View):
    """A view that keeps the lines that it tells."""

    def __init__(self) -> None:
        self.row = Row("", 0)
        self.told: list[str] = []
        super().__init__(Console(), [self.row])

    def tell(self, line: str) -> None:
        self.told.append(line)


class Killing(Listening):
    """A view that kills the first node when the shard on it has sent records and is in the middle of its cells."""

    def __init__(self, nodes: Nodes, held: Path) -> None:
        super().__init__()
        self._nodes, self._held = nodes, held
        self._first = nodes.add(HOLD=str(held))
        self.lost_records = 0

    def update(self) -> None:
        if self._first and self._held.is_file() and sum(self.row.seen.values()):
            self.lost_records = sum(self.row.seen.values())
            self._nodes.added = self._nodes.add()
            self._nodes.kill(self._first)
            self._first = None


def run_shards(nodes: Nodes, lane: matrix.Lane, view: Listening) -> Exit:
    """Run the few cells of the lane in two shards. The results are in ``results``."""
    environment = process.find(Path.cwd(), lane.name)[1]
    listing = planning.order_of(lane, environment, str(Path.cwd()), "token", ("-p", "holding", *FEW), reuse=True)
    plan = planning.plan(listing, jobs.split([(lane, "")], 2), "")
    view.row.lane, view.row.shards = lane.name, plan.shards
    with closing(ray_cluster.RayCluster(nodes.cluster.address)) as cluster:
        return Session(cluster, [LaneResults(plan, Path("results"))], view, [view.row]).run([listing], {})


def test_a_run_whose_node_is_killed_equals_a_run_on_this_machine(
    nodes: Nodes, lane: matrix.Lane, tmp_path: Path
) -> None:
    start = process.start(tmp_path, lane.name)
    words = ["--backend", lane.backend, "--lane-name", lane.name, "--results", "local", "--jobs", "1", *FEW]
    subprocess.run(
        [start.python, "-m", "pytest", "--pyargs", "conformance", "-q", *words],
        env=os.environ | start.variables, check=True,
    )  # fmt: skip

    with Killing(nodes, tmp_path / "held") as view:
        code = run_shards(nodes, lane, view)

    assert code == Exit.OK
    assert view.lost_records
    assert any("attempt 2" in line for line in view.told)
    alone, merged = (runs.opened(Path(d) / "runs" / runs.names(Path(d))[-1]) for d in ("local", "results"))
    assert merged.manifest.collected == alone.manifest.collected == view.row.cells
    assert merged.ended
    assert merged.by_status == alone.by_status
    assert not merged.by_status[Status.NOT_REACHED.value]
    diff = CliRunner().invoke(commands, ["diff", str(alone.directory), str(merged.directory)])
    assert diff.exit_code == 0, diff.output


def test_a_shard_that_kills_its_worker_again_and_again_is_given_up(
    nodes: Nodes, lane: matrix.Lane, tmp_path: Path
) -> None:
    if nodes.added:
        nodes.kill(nodes.added)
    nodes.add(POISON="yes")
    with Listening() as view:
        assert run_shards(nodes, lane, view) == Exit.INTERRUPTED

    (name,) = runs.names(Path("results"))
    run = runs.opened(Path("results/runs") / name)
    observations = runs.load(run)
    lost = {o.reason for o in observations if o.status is Status.NOT_REACHED}
    assert len(observations) == view.row.cells
    assert [reason.partition(", on ")[0] for reason in lost] == ["the process that ran the shard died 3 times"]
    # These are the cells of the second shard, and those of the first that were recorded.
    assert run.by_status[Status.PASS.value] > len(observations) // 4
