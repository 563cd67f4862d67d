"""The environment of a lane on a node: made once for a cluster run, and clear errors where it cannot be."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conformance.cluster import environment
from conformance.cluster.model import ClusterError

NOX = """
import pathlib, sys, time
print("building", sys.argv[-1])
with open("made", "a") as made:
    made.write(sys.argv[-1] + "\\n")
if pathlib.Path("broken").exists():
    sys.exit("no compiler")
pathlib.Path(".nox", sys.argv[-1] + ".python").write_text(sys.executable)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout whose nox lists the environments that it makes."""
    (tmp_path / "noxfile.py").touch()
    (tmp_path / "nox.py").write_text(NOX)
    monkeypatch.setattr(environment, "_nox", lambda: [sys.executable, str(tmp_path / "nox.py")])
    return tmp_path


def made(checkout: Path) -> list[str]:
    return (checkout / "made").read_text().split() if (checkout / "made").is_file() else []


def test_tasks_of_one_run_make_an_environment_once_and_the_next_run_again(checkout: Path) -> None:
    with ThreadPoolExecutor(4) as tasks:
        list(tasks.map(lambda _: environment.ensure(checkout, "torch-2.8", "run"), range(4)))
    assert made(checkout) == ["torch-2.8"]
    environment.ensure(checkout, "torch-2.8", "another run")
    assert made(checkout) == ["torch-2.8"] * 2


def test_an_environment_that_exists_is_taken_as_it_is_on_request(checkout: Path) -> None:
    environment.ensure(checkout, "torch-2.8", "run", reuse=True)
    environment.ensure(checkout, "torch-2.8", "another run", reuse=True)
    assert made(checkout) == ["torch-2.8"]


def test_a_node_that_cannot_make_it_says_what_nox_said(checkout: Path) -> None:
    (checkout / "broken").touch()
    with pytest.raises(ClusterError, match=r"`nox -s torch-2.8` failed in .*: building torch-2.8 \| no compiler; all"):
        environment.ensure(checkout, "torch-2.8", "run")


def test_a_node_without_a_checkout_says_so(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="is no checkout of the suite; every node needs one at this path"):
        environment.ensure(tmp_path, "torch-2.8", "run")
