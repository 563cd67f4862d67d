"""The suites of other projects in the kill-rate: where they run, the faults that they try, and their tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.lanes import matrix, process
from tools.kill_rate import __main__ as kill_rate
from tools.kill_rate import options, tables
from tools.kill_rate.options import sample
from tools.kill_rate.peers import PEERS, Peer, lane_of
from tools.kill_rate.published import cannot_join, joined, with_peers
from tools.kill_rate.session import Session, measured
from tools.kill_rate.summary import Facts, Hunt, lacking, summary
from tools.kill_rate.torchcts import speed
from tools.kill_rate.trial import CLEAN, Finding, Trial

ROOT = Path(__file__).parents[2]
MATRIX = matrix.load(ROOT / "matrices" / "refnpu.toml")
FIRST = measured(MATRIX)[0]
FAULTS = tuple("abcdef")


def trials(found: str, tried: str, cpu_s: float = 2.0) -> tuple[Trial, ...]:
    """Return the trials of one hunter: the faults that it tried, each a letter, and those among them that it found."""
    of = {fault: (Finding("value", f"item of {fault}"),) * (fault in found) for fault in tried}
    return (Trial(CLEAN, 10, cpu_s, cpu_s, ()), *(Trial(fault, 3, 1.0, 1.0, found) for fault, found in of.items()))


def made(lane: bool = True, whole: str = "", **part: tuple[str, str]) -> dict[str, Any]:
    """Return a summary of six faults. The lane and the peer ``whole`` try all; ``part``: found and tried, by peer."""
    hunts = [Hunt("lane", trials("abc", "abcdef"))] if lane else []
    hunts += [Hunt("whole", trials(whole, "abcdef"), peer=True)] if whole else []
    hunts += [Hunt(name, trials(*of), peer=True) for name, of in part.items()]
    return summary(Facts(FAULTS, "2.0", 60), hunts, None)


def test_a_peer_runs_in_the_first_lane_if_it_allows_its_torch() -> None:
    assert lane_of(PEERS["plain_allclose"], MATRIX, FIRST) == FIRST
    assert lane_of(Peer("other", torch=">=2.7"), MATRIX, FIRST) == FIRST


def test_a_peer_of_older_versions_of_torch_runs_on_the_newest_that_it_allows() -> None:
    assert lane_of(PEERS["torchcts"], MATRIX, FIRST).name == "refnpu-torch2.12-malloc-release"
    assert lane_of(Peer("other", torch="<2.8"), MATRIX, FIRST).name == "refnpu-torch2.7-malloc-release"
    with pytest.raises(LookupError, match=r"no torch of the matrix of refnpu is <2\.0"):
        lane_of(Peer("other", torch="<2.0"), MATRIX, FIRST)


def test_a_peer_whose_environment_is_missing_is_an_error_that_names_its_session(tmp_path: Path) -> None:
    session = Session(MATRIX, ("a",), (), ("torchcts",), tmp_path, tmp_path, workers=1)
    with pytest.raises(process.NotMade, match="create it with: nox -s peer-torchcts"):
        session._interpreter_of("torchcts")  # noqa: SLF001 - as a worker starts


def test_a_larger_sample_contains_a_smaller_one_of_its_seed() -> None:
    faults = tuple(f"fault_{i}" for i in range(100))
    small, large = sample(faults, 10, seed=3), sample(faults, 20, seed=3)
    assert (len(small), len(large)) == (10, 20)
    assert set(small) < set(large)
    assert sorted(large, key=faults.index) == list(large)
    assert small != sample(faults, 10, seed=4)
    assert sample(faults, 1000, seed=3) == faults


def test_a_peer_that_tried_a_part_is_empty_where_it_did_not_look() -> None:
    found = made(whole="a", part=("ad", "abd"))
    assert lacking(found, FAULTS) == []
    assert tables.faults(found)[1] == [
        ["`a`", "value", "value", "value"], ["`b`", "value", "-", "-"], ["`c`", "value", "-", ""],
        ["`d`", "-", "-", "value"], ["`e`", "-", "-", ""], ["`f`", "-", "-", ""],
    ]  # fmt: skip
    assert [row[:2] for row in tables.totals(found)[1]] == [
        ["the suite, all lanes", "3 of 6"], ["lane `lane`", "3 of 6"], ["peer `whole`", "1 of 6"],
        ["peer `part`", "2 of 3"],
    ]  # fmt: skip
    kinds = dict.fromkeys("ab", "all") | dict.fromkeys("cd", "some") | dict.fromkeys("ef", "none")
    assert [row[-1] for row in tables.classes(found, kinds)[1]] == ["1", "1 of 1", ""]


def test_what_a_peer_finds_stands_beside_what_the_suite_finds_of_the_same_faults() -> None:
    assert tables.peers(made(whole="a", part=("ad", "abd")))[1] == [
        ["`whole`", "6", "1", "3", "2", "-"], ["`part`", "3", "2", "2", "1", "`d`"],
    ]  # fmt: skip


def test_new_faults_can_be_published_without_a_peer_that_tried_a_part_alone() -> None:
    before = made(whole="a", part=("ad", "abd"))
    assert cannot_join(before, ["lane"], ["whole"], "2.0") == []
    assert cannot_join(before, ["lane"], ["whole", "part"], "2.0") == []
    assert cannot_join(before, ["lane"], ["part"], "2.0") == ["its peers are whole, part, not part"]
    assert cannot_join(before, ["lane"], ["whole", "third"], "2.0") == ["its peers are whole, part, not whole, third"]
    hunts = [Hunt("lane", trials("g", "g")), Hunt("whole", trials("", "g"), peer=True)]
    both = joined(before, summary(Facts(("g",), "2.0", 60), hunts, None), "abcdefg")
    assert both["peer_totals"]["part"] == before["peer_totals"]["part"]
    assert tables.faults(both)[1][-1] == ["`g`", "value", "-", ""]


def test_peers_alone_leave_the_results_of_lanes_and_of_other_peers_as_they_are() -> None:
    before = made(whole="a")
    after = with_peers(before, made(lane=False, part=("ad", "abd")))
    assert {key: after[key] for key in ("faults", "killed", "survivors", "lanes", "torch")} == {
        key: before[key] for key in ("faults", "killed", "survivors", "lanes", "torch")
    }
    assert after["peer_totals"]["whole"] == before["peer_totals"]["whole"]
    assert (after["peers"], after["peer_totals"]["part"]["killed"]) == ({"whole": 1, "part": 2}, 2)
    for fault, rows in after["detail"].items():
        assert {name: row for name, row in rows.items() if name != "part"} == before["detail"][fault]
        assert ("part" in rows) == (fault in "abd")


def test_a_measurement_that_goes_on_with_a_larger_sample_counts_no_second_twice() -> None:
    once = with_peers(made(), made(lane=False, part=("a", "ab")))
    later = with_peers(once, made(lane=False, part=("ad", "abd")))
    assert later["peer_totals"]["part"] == made(part=("ad", "abd"))["peer_totals"]["part"]
    other = with_peers(once, made(lane=False, part=("d", "de")))
    assert (other["peers"]["part"], other["peer_totals"]["part"]["cpu_s"]) == (2, 2 + 2 * 2)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Publish and return a summary of three faults of the reference NPU."""
    faults = ("seed_ignored", "double_free", "cat_on_default_stream")
    hunts = [Hunt("malloc", tuple(Trial(fault, 3, 1.0, 1.0, ()) for fault in (CLEAN, *faults)))]
    found = summary(Facts(faults, "2.13", 60), hunts, None)
    file = tmp_path / "published.json"
    file.write_text(json.dumps(found))
    monkeypatch.setattr(options, "PUBLISHED", file)
    return found


@pytest.mark.usefixtures("published")
def test_peers_alone_try_the_faults_of_the_published_summary() -> None:
    session = options.parse(None, "--lanes none --peers torchcts --publish".split()).session
    assert (session.lanes, session.peers, len(session.faults)) == ((), ("torchcts",), 3)
    drawn = options.parse(None, "--lanes none --sample 2".split()).session
    assert (len(drawn.faults), drawn.peers) == (2, tuple(PEERS))
    named = options.parse(None, "--lanes none --faults fallback_not_copied_back".split()).session
    assert named.faults == ("fallback_not_copied_back",)


@pytest.mark.parametrize(
    ("arguments", "peers"),
    [
        ("", list(PEERS)),
        ("--faults a --peers torchcts,plain_allclose", ["plain_allclose", "torchcts"]),
        ("--peers none --workers 1", []),
        ("--unmeasured --publish", []),
        ("--unmeasured --peers torchcts", ["torchcts"]),
    ],
)
@pytest.mark.usefixtures("published")
def test_nox_makes_the_environments_of_the_peers_that_are_asked_for(arguments: str, peers: list[str]) -> None:
    assert list(options.peers_of(arguments.split())) == peers


def test_a_sample_is_of_the_faults_of_peers_and_lanes_try_all() -> None:
    session = options.parse(None, "--faults seed_ignored,double_free --sample 1".split()).session
    assert (len(session.faults), len(session.sample or ())) == (2, 1)
    assert options.parse(None, ["--faults", "seed_ignored"]).session.sample is None


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--lanes none --unmeasured", "--lanes none is for faults that lanes have tried"),
        ("--lanes none --peers none", "leave nothing that looks for a fault"),
        ("--lanes none --publish --faults fallback_not_copied_back", "does not cover fallback_not_copied_back"),
    ],
)
def test_peers_alone_refuse_what_they_cannot_measure(arguments: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        options.parse(None, arguments.split())


def test_publishing_peers_alone_adds_them(
    published: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = (Trial(CLEAN, 9, 1.0, 1.0, ()), Trial("double_free", 1, 1.0, 1.0, (Finding("torchcts", "test"),)))
    hunts = [Hunt("torchcts", found, peer=True)]
    monkeypatch.setattr(Session, "run", lambda _: summary(Facts(("double_free",), "2.13", 5), hunts, None))
    assert kill_rate.main("--lanes none --peers torchcts --faults double_free --publish".split()) == 0
    assert capsys.readouterr().out == "torchcts: 1 of 1\n2 s of CPU, 5 s\n"
    after = json.loads(options.PUBLISHED.read_text())
    assert (after["peers"], after["lanes"]) == ({"torchcts": 1}, published["lanes"])
    assert after["detail"]["double_free"]["torchcts"]["where"] == "test"


def test_a_remembered_function_is_called_once_for_each_argument() -> None:
    called: list[Any] = []

    def function(*arguments: Any) -> int:
        called.append(arguments)
        return len(called)

    remembered, data = speed.once(function), [1]
    assert [remembered(), remembered(data), remembered(), remembered(data)] == [1, 2, 1, 2]
    assert remembered([1]) == 3


CONFTEST = """
import os

def pytest_addoption(parser):
    for name in ("--device", "--known-segfault-policy", "--adaptive-isolation", "--results-dir"):
        parser.addoption(name)
    parser.addoption("--non-interactive", action="store_true")

def pytest_ignore_collect():
    return False
"""
TESTS = """
import os, random, pytest, torch

@pytest.fixture
def broken():
    raise OSError("no such thing")

@pytest.mark.parametrize("n", [1, 2])
def test_passes(n, request):
    assert request.config.getoption("--device") == "cpu"

def test_fails():
    print("something")
    assert 1 == 2, "values differ"

def test_dies():
    os._exit(3)

def test_skips():
    pytest.skip("unsupported")

def test_errs(broken):
    pass

def test_draws():
    assert 0, (random.random(), torch.rand(1).item())
"""
HUNT = """
import json, sys
from conformance import backends
from tools.kill_rate import torchcts
from tools.kill_rate.forked import ForkedHunter

def use(checks):
    hunter = ForkedHunter(checks, 60)
    found = [(item, hunter.attempt(item)) for item in (*hunter.plan, hunter.plan[-1])]
    hunter.rest()
    print(json.dumps([(item, f and f.check, f and f.message) for item, f in found]))
    return 7

sys.exit(torchcts.collect(backends.find("cpu"), use))
"""


def hunted(place: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Hunt with a package ``torchcts`` that holds these tests in place of TorchCTS's."""
    package = place / "torchcts"
    (package / "selftest").mkdir(parents=True)
    (package / "core").mkdir()
    (package / "ops").mkdir()
    slow = {name.removeprefix("torchcts.").replace(".", "/"): f"{function} = print" for name, function in speed.SLOW}
    files = {
        "__init__": "",
        "core/__init__": "",
        "conftest": CONFTEST,
        "ops/test_it": tests,
        "selftest/test_own": "1 / 0",
    }
    for name, text in (files | slow).items():
        (package / f"{name}.py").write_text(text)
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (place, ROOT)))}
    return subprocess.run(
        [sys.executable, "-c", HUNT], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


def test_each_test_of_torchcts_is_an_item_and_a_death_is_a_finding(tmp_path: Path) -> None:
    done = hunted(tmp_path, TESTS)
    assert done.returncode == 7, done.stderr
    found = json.loads(done.stdout)
    assert [(item, check) for item, check, _ in found[:-1]] == [
        ("torchcts/ops/test_it.py::test_passes[1]", None), ("torchcts/ops/test_it.py::test_passes[2]", None),
        ("torchcts/ops/test_it.py::test_fails", "torchcts"), ("torchcts/ops/test_it.py::test_dies", "crash"),
        ("torchcts/ops/test_it.py::test_skips", None), ("torchcts/ops/test_it.py::test_errs", "torchcts"),
        ("torchcts/ops/test_it.py::test_draws", "torchcts"),
    ]  # fmt: skip
    messages = [message for _, _, message in found]
    assert "values differ" in messages[2]
    assert "setup: OSError: no such thing" in messages[5]
    assert messages[-2] == messages[-1]  # the test draws the same values each time


def test_a_module_of_torchcts_that_cannot_be_collected_is_an_error(tmp_path: Path) -> None:
    done = hunted(tmp_path, "import no_such_module")
    assert done.returncode == 1
    assert "TorchCTS was not collected: torchcts/ops/test_it.py: E   ModuleNotFoundError" in done.stderr
