"""One task on a node: the records that it sends as they come, and its result for each end of pytest."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from conformance.cluster import node
from conformance.cluster.model import Begun, Ended, News, Order, State
from conformance.lanes.matrix import Resources

MATRIX = (
    'backend = "demo"\nproject = "p"\nmodule = "m"\n[[torch]]\nversion = "2.8"\n[environments.malloc]\nMODE = "late"\n'
)
LANE = "demo-torch2.8-malloc-release"
JOURNAL = """
words = sys.argv[3:]
results = pathlib.Path(words[words.index("--results") + 1])
(results / "lane").mkdir(parents=True)
journal = (results / "lane/observations.jsonl").open("a")
journal.write("the manifest\\na record\\nhalf a rec")
journal.flush()
"""


class Mail:
    """An inbox that keeps the lines it gets. Once it has lines, it answers a task with ``goes_on``."""

    def __init__(self, begun: Begun = Begun(1), goes_on: bool = True) -> None:  # noqa: B008 - is immutable
        self._begun, self._goes_on = begun, goes_on
        self.lines: list[str] = []

    def begin(self, key: str, node: str) -> Begun:
        return self._begun

    def add(self, news: News) -> bool:
        self.lines += news.lines
        return self._goes_on or not self.lines


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """Return an order for a shard, in a checkout whose environment exists."""
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/demo.toml").write_text(MATRIX)
    (tmp_path / ".nox").mkdir()
    return Order(LANE, "demo", "full", "torch-2.8", "1/2", Resources(), str(tmp_path), "token", reuse=True)


def run(order: Order, program: str, mail: Mail) -> Ended:
    """Run the order with a program in place of the lane's Python."""
    python = Path(order.root, "python")
    python.write_text(f"#!{sys.executable}\nimport os, pathlib, signal, sys, time\n{program}")
    python.chmod(0o755)
    Path(order.root, ".nox/torch-2.8.python").write_text(str(python))
    return node.run(order, {}, mail, "here")


def test_complete_lines_are_sent_and_the_shard_without_cells_is_empty(order: Order) -> None:
    mail = Mail()
    assert run(order, JOURNAL, mail) == Ended(State.EMPTY, "here")
    assert mail.lines == ["the manifest", "a record"]


def test_an_error_of_the_arguments_is_the_reason(order: Order) -> None:
    ended = run(order, "print('ERROR: --tier: unknown tier'); sys.exit(4)", Mail())
    told = "node here: pytest ended with exit code 4: ERROR: --tier: unknown tier"
    assert (ended.state, ended.reason) == (State.FAILED, told)


def test_a_signal_that_ends_pytest_lets_the_shard_be_tried_again(order: Order) -> None:
    with pytest.raises(node.ProcessDied, match="node here: SIGKILL ended pytest"):
        run(order, "os.kill(os.getpid(), signal.SIGKILL)", Mail())


def test_a_task_that_may_not_begin_starts_nothing(order: Order) -> None:
    assert run(order, "sys.exit(3)", Mail(Begun(0))).state is State.STOPPED
    assert run(order, "sys.exit(3)", Mail(Begun(0, "died"))) == Ended(State.FAILED, "here", "died")


def test_a_stop_interrupts_pytest_and_its_last_records_are_sent(order: Order) -> None:
    mail = Mail(goes_on=False)
    # The interruption may come as soon as the lines are written, so the program writes them inside the ``try``.
    writing = textwrap.indent(JOURNAL + "time.sleep(600)\n", "    ")
    closing = "except KeyboardInterrupt:\n    journal.write('ord\\n')\n    sys.exit(2)"
    assert run(order, f"try:{writing}{closing}", mail).state is State.STOPPED
    assert mail.lines == ["the manifest", "a record", "half a record"]


def test_pytest_runs_in_the_lane_with_its_number_of_threads(order: Order) -> None:
    told = run(order, "print('ERROR', os.environ['MODE'], os.environ['OMP_NUM_THREADS']); sys.exit(4)", Mail())
    assert told.reason.endswith("ERROR late 1")


def test_a_lane_that_cannot_be_listed_says_why(order: Order) -> None:
    listing = Order(LANE, "demo", "full", "torch-2.8", "", Resources(), order.root, "token", reuse=True)
    cell = "ops/masking.py::masked_fill_.Scalar[float32-expanded]"
    assert run(listing, f"print('{cell}')", Mail()) == Ended(State.ENDED, "here", cells=(cell,))
    assert run(listing, "sys.exit(4)", Mail()).state is State.FAILED
