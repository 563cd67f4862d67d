"""`conformance bisect` on scratch repositories: worktrees, commits that do not build, interruption."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from conformance.bisect import record
from conformance.bisect.alone import alone
from conformance.bisect.record import Question, Record
from conformance.cli import commands
from conformance.commands import bisect
from conformance.lanes import torch_wheel
from tests.bisect.test_ends import CASE, keep, said
from tests.bisect.test_points import git, history
from tests.bisect.test_processes import alive

JUDGE = """
import pathlib, sys, time
value = int(pathlib.Path("value").read_text())
hold = pathlib.Path({hold!r})
if hold.exists():
    hold.write_text(hold.read_text() + "x")
while hold.exists() and len(hold.read_text()) > 2:
    time.sleep(0.02)
if value >= {bad}:
    sys.exit(f"wrong result {{value}}")
"""

# Unless the second file exists, appends its process id to the first and sleeps. Two places may be built at a time.
SLOW = """
import os, pathlib, sys, time
building, allowed = map(pathlib.Path, sys.argv[1:])
if not allowed.exists():
    with building.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(60)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository of 20 commits: ``value`` holds each one's index, and the builds of 9 and 10 fail."""
    build = "import sys; sys.exit({!r})"
    commits = ({"value": str(i), "build.py": build.format("no header" if i in (9, 10) else 0)} for i in range(20))
    return history(tmp_path / "repository", commits)


def judge(tmp_path: Path, bad: int) -> str:
    """Return a command that fails from ``bad`` on. While the file ``hold`` exists, its third run waits."""
    file = tmp_path / "judge.py"
    file.write_text(JUDGE.format(bad=bad, hold=str(tmp_path / "hold")))
    return shlex.join([sys.executable, str(file)])


def arguments(tmp_path: Path, repository: Path, script: str, *more: str) -> list[str]:
    out = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "--repository", str(repository)]
    build = ["--build", shlex.join([sys.executable, "build.py"])]
    ends = [] if "--good" in more else ["--good", "main~19", "--bad", "main"]
    return ["bisect", "--axis", "backend", "--script", script, "--rate", "1", *out, *build, *ends, *more]


def invoke(*given: str) -> Result:
    return CliRunner().invoke(commands, list(given))


def test_the_first_bad_commit_is_named_and_no_worktree_is_left(tmp_path: Path, repository: Path) -> None:
    result = invoke(*arguments(tmp_path, repository, judge(tmp_path, 14)))
    assert result.exit_code == 0, result.output
    facts = json.loads((tmp_path / "out/result.json").read_text())
    case = facts["cases"][0]
    assert case["first"] == git(repository, "rev-parse", "main~5")[:10]
    assert case["signature"]["said"] == "wrong result N"
    assert git(repository, "worktree", "list").count("\n") == 0
    assert "first bad" in (tmp_path / "out/report.md").read_text()


def test_commits_that_do_not_build_are_in_the_range_and_not_called_bad(tmp_path: Path, repository: Path) -> None:
    result = invoke(*arguments(tmp_path, repository, judge(tmp_path, 10)))
    case = json.loads((tmp_path / "out/result.json").read_text())["cases"][0]
    assert result.exit_code == 0
    assert case["kind"] == "range"
    assert len(case["untested"]) == 2
    assert "no header" in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize("wrong", [("--rate", "2"), ("--rate", "0"), ("--threshold", "0.5"), ("--threshold", "1")])
def test_a_wrong_number_is_named_and_leaves_no_search_behind(
    wrong: tuple[str, str], tmp_path: Path, repository: Path
) -> None:
    result = invoke(*arguments(tmp_path, repository, "true"), *wrong)
    assert result.exit_code == 2
    assert result.output.startswith(f"Error: {wrong[0]}: expected more than 0")
    assert not (tmp_path / "out").exists()


def test_without_ends_the_search_begins_at_the_newest_commit_and_goes_back(tmp_path: Path, repository: Path) -> None:
    script = judge(tmp_path, 14)
    git(repository, "commit", "-qm", "nothing", "--allow-empty")
    assert invoke(*arguments(tmp_path, repository, script, "--good", "")).exit_code == 0
    facts = json.loads((tmp_path / "out/result.json").read_text())
    case = facts["cases"][0]
    assert len(facts["points"]) == 21
    assert case["first"] == git(repository, "rev-parse", "main~6")[:10]
    tried = [next(i for i, p in enumerate(facts["points"]) if p["name"] == s["point"]) for s in case["steps"]]
    assert tried[:5] == [20, 19, 18, 16, 12]


class Asked:
    """A stand-in for a session, which keeps the question and is interrupted."""

    question: Question

    def __init__(self, kept: Record, *_: object) -> None:
        Asked.question = kept.question

    def run(self) -> None:
        raise KeyboardInterrupt


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a matrix of three torch versions and a nightly one, and replace the session by ``Asked``."""
    versions = "".join(f'[[torch]]\nversion = "{v}"\n' for v in ("2.7", "2.8", "2.9"))
    nightly = '[[torch]]\nversion = "nightly"\nrequirement = "torch>=3"\nindex = "https://example.org"\n'
    lanes = f"{versions}{nightly}[builds.release]\n[environments.malloc]\n"
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices/demo.toml").write_text(f'backend = "demo"\nproject = ""\nmodule = "demo"\n{lanes}')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bisect, "Session", Asked)


@pytest.mark.usefixtures("matrix")
def test_two_searches_do_not_prepare_versions_in_one_cache(tmp_path: Path) -> None:
    with alone(tmp_path):
        result = invoke("bisect", "--script", "true", "--good", "2.7", "--cache", str(tmp_path))
    assert result.exit_code == 2
    assert "another search prepares versions there; wait for its end, or give another --cache" in result.output


@pytest.mark.usefixtures("matrix")
@pytest.mark.parametrize(("axis", "good", "bad"), [("torch", 0, 1), ("backend", 1, 3)])
def test_without_ends_results_say_where_to_search(
    axis: str, good: int, bad: int, tmp_path: Path, repository: Path
) -> None:
    """The search is over the three versions, or over the first five commits."""
    git(repository, "checkout", "-q", "main~15")
    commits = git(repository, "log", "--reverse", "--format=%H").split()
    for torch, commit, failing in (("2.7", 0, ()), ("2.8", 1, ()), ("2.8", 3, (CASE,)), ("2.9", 4, (CASE,))):
        told = {"torch": f"{torch}.0", "backend_commit": commits[commit][:12]}
        keep(tmp_path / "results", said(failing), lane=f"demo-torch{torch}-malloc-release", **told)
    result = invoke("bisect", CASE, "--axis", axis, "--torch", "2.8", "--repository", str(repository))
    assert "to continue: conformance" in result.output
    assert (Asked.question.good, Asked.question.bad) == (good, bad)
    assert "passes at" in result.output


@pytest.mark.usefixtures("matrix")
def test_commits_are_built_against_the_torch_asked_for_from_its_own_index(repository: Path) -> None:
    asked = ["--axis", "backend", "--good", "main~2", "--bad", "main", "--repository", str(repository)]
    invoke("bisect", CASE, *asked, "--torch", "nightly")
    assert {(p.torch, p.index) for p in Asked.question.points} == {("torch>=3", "https://example.org")}


@pytest.mark.usefixtures("matrix")
@pytest.mark.parametrize(
    ("good", "bad", "fixed", "path"),
    [
        ("2.7+main~1", "2.8+main", False, ["2.7", "2.8", "2.8"]),
        ("2.8+main~1", "2.7+main", False, ["2.8", "2.7", "2.7"]),
        ("2.7+main", "2.9+main~1", True, ["2.9", "2.8", "2.7", "2.7"]),
    ],
)
def test_a_search_over_both_histories_ends_at_the_newer_commit(
    good: str, bad: str, fixed: bool, path: list[str], repository: Path
) -> None:
    given = [
        "--axis",
        "both",
        "--good",
        good,
        "--bad",
        bad,
        "--repository",
        str(repository),
        *["--fixed"][: int(fixed)],
    ]
    invoke("bisect", CASE, *given)
    asked = Asked.question
    assert [p.name.partition("+")[0] for p in asked.points] == path
    ends = (asked.points[asked.good or 0], asked.points[asked.bad])
    assert [p.name.partition("+")[0] for p in ends] == [e.partition("+")[0] for e in (good, bad)]


def test_bisect_with_fixed_names_the_commit_that_repaired_a_failure(tmp_path: Path, repository: Path) -> None:
    script = f"! {judge(tmp_path, 14)}"
    result = invoke(*arguments(tmp_path, repository, script, "--fixed", "--good", "main", "--bad", "main~19"))
    case = json.loads((tmp_path / "out/result.json").read_text())["cases"][0]
    assert result.exit_code == 0, result.output
    assert case["after"] == git(repository, "rev-parse", "main~5")[:10]


def start(given: list[str]) -> subprocess.Popen[str]:
    """Start the command as a process of its own, which the test interrupts."""
    return subprocess.Popen(
        [sys.executable, "-m", "conformance.cli", *given], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        start_new_session=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def test_an_interrupted_search_is_resumed(tmp_path: Path, repository: Path) -> None:
    given = arguments(tmp_path, repository, judge(tmp_path, 14))
    (tmp_path / "hold").touch()
    running = start(given)
    state = tmp_path / "out/state.json"
    while not (state.is_file() and len(json.loads(state.read_text())["runs"]) >= 2):
        assert running.poll() is None
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 2
    assert "to continue: conformance bisect" in said
    assert git(repository, "worktree", "list").count("\n") == 0
    runs = len(json.loads(state.read_text())["runs"])
    (tmp_path / "hold").unlink()
    assert invoke(*given).exit_code == 2  # refused without --resume
    assert invoke(*given, "--resume").exit_code == 0
    after = json.loads(state.read_text())["runs"]
    assert len(after) > runs
    assert json.loads((tmp_path / "out/result.json").read_text())["cases"][0]["kind"] == "culprit"


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_interrupted_is_stopped_and_made_again(
    by: signal.Signals, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    building = tmp_path / "building"
    slow = shlex.join([sys.executable, str(tmp_path / "slow.py"), str(building), str(tmp_path / "allowed")])
    given = arguments(tmp_path, repository, judge(tmp_path, 14), "--build", slow)
    running = start(given)
    while not (building.is_file() and building.read_text().endswith("\n")):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(by)
    _, said = running.communicate(timeout=120)
    assert (running.returncode, "interrupted after 0 runs" in said) == (2, True)
    assert not any(map(alive, map(int, building.read_text().split())))
    assert git(repository, "worktree", "list").count("\n") == 0
    assert record.load(tmp_path / "out/state.json").places == {}  # the place is neither built nor unusable
    (tmp_path / "allowed").touch()
    assert invoke(*given, "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["bisect"], "expected either CASEs or --script"),
        (["bisect", "neg"], "'neg' is not a case's id"),
        (["bisect", "--axis", "backend", "--script", "true", "--fixed"], "expected --bad, a commit or date"),
        (["bisect", "--axis", "both", "--script", "true"], "expected --good and --bad"),
        (["bisect", "--script", "true", "--good", "9.9"], "9.9"),
        (["bisect", "--script", "true", "--rate", "2"], "more than 0 and at most 1"),
        (["bisect", "--script", "true", "--threshold", "0.2"], "--threshold: expected more than 0.5"),
        (["bisect", "--script", "true", "--good", "2.15", "--bad", "2.8"], "give --fixed"),
        (["bisect", "--script", "true", "--timeout", "0"], "--timeout: expected a positive number of seconds, got 0"),
        (["bisect", "--script", "true", "--tries", "0"], "'--tries': 0 is not in the range"),
        (["bisect", "--script", "true", "--most-runs", "0"], "'--most-runs': 0 is not in the range"),
        (["bisect", "--script", "true", "--ahead", "-1"], "'--ahead': -1 is not in the range"),
        (
            ["bisect", "--script", "true", "--good", "2.8", "--cache", f"{__file__}/x"],
            "x: cannot be created: Not a dir",
        ),
        (["bisect", "--script", "true", "--good", "2.8", "--out", f"{__file__}/x"], "x: cannot be created: Not a dir"),
        (["bisect", "--script", "true", "--resume"], "there is no search to resume"),
        (["bisect", "--axis", "both", "--script", "true", "--good", "2.8", "--bad", "2.9"], "e.g. 2.8+v1.0"),
    ],
)
def test_a_mistake_is_one_line(given: list[str], said: str, tmp_path: Path) -> None:
    result = invoke("bisect", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), *given[1:])
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_program_that_a_search_needs_and_does_not_find_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV_DEFAULT_INDEX", tmp_path.as_uri())  # so that no real index is queried
    monkeypatch.setattr(torch_wheel, "lacking_room", lambda *_: "")
    where = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]
    result = invoke("bisect", "--script", "true", "--good", "2.8", *where)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == "Error: uv: no such program; the search needs it, so install it"
