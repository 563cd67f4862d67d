"""The kill-rate of new faults: the measured faults, how they join the published summary, and refused requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.faults import with_results
from tools.kill_rate import __main__ as kill_rate
from tools.kill_rate import options
from tools.kill_rate.peers import Peer
from tools.kill_rate.published import cannot_join, joined, restricted
from tools.kill_rate.session import Session
from tools.kill_rate.summary import Facts, Hunt, lacking, summary, unmeasured
from tools.kill_rate.trial import CLEAN, Finding, Trial

ROOT = Path(__file__).parents[2]
EVERY = tuple(with_results(ROOT / "backend"))
NEW = ("seed_ignored", "cat_on_default_stream")
WHERE = {"a": ("lane",), "b": ("peer",), "c": (), "d": ("lane", "peer"), "gone": ("lane", "peer")}  # finders by fault


def trials(name: str, faults: Sequence[str], alarms: int, clean_s: float) -> tuple[Trial, ...]:
    clean = Trial(CLEAN, 10, clean_s, clean_s, (Finding("value", "noisy"),) * alarms)
    found = {fault: (Finding("value", f"cell of {fault}"),) * (name in WHERE[fault]) for fault in faults}
    return (clean, *(Trial(fault, 3, 1.0, 2.0, found[fault]) for fault in faults))


def of(*faults: str, alarms: int = 0, clean_s: float = 4.0, torch: str = "2.0") -> dict[str, Any]:
    """Return the summary of one measurement of these faults."""
    hunts = [Hunt("lane", trials("lane", faults, alarms, clean_s))]
    hunts += [Hunt("peer", trials("peer", faults, alarms, clean_s), peer=True)]
    return summary(Facts(faults, torch, 60), hunts, {"c": "tests/test_c.py::test_c"})


@pytest.mark.parametrize("later", [("d",), ("b", "c"), ("a", "d", "b")])
def test_a_joined_summary_has_the_faults_that_one_measurement_would_have(later: tuple[str, ...]) -> None:
    whole = of("a", "b", "c", "d")
    both = joined(of(*(f for f in "abcd" if f not in later)), of(*later, clean_s=5.0), "abcd")
    for key in ("faults", "killed", "survivors", "peers", "detail", "torch"):
        assert both[key] == whole[key], key
    assert list(both["detail"]) == list("abcd")
    assert {name: t["killed"] for name, t in both["lanes"].items()} == {"lane": 2}
    assert both.keys() == whole.keys()
    assert (lacking(both, "abcd"), unmeasured(both, "abcde")) == ([], ["e"])


def test_times_and_false_alarms_of_joined_measurements_add_up() -> None:
    both = joined(of("a", "b", alarms=1), of("d", alarms=2, clean_s=5.0), "abd")
    lane = both["lanes"]["lane"]
    assert (lane["tried"], lane["false_alarms"], lane["cpu_s"]) == (20, 3, 4 + 5 + 3 * 2)
    assert (both["false_alarms"], both["seconds"], both["cpu_s"]) == (3, 120, 2 * lane["cpu_s"])
    assert both["peer_totals"]["peer"]["false_alarms"] == 3


def test_a_run_without_faults_that_two_measurements_share_counts_once() -> None:
    both = joined(joined(of("a", alarms=1), of("b", alarms=1), "ab"), of("d", alarms=1), "abd")
    lane = both["lanes"]["lane"]
    assert (lane["tried"], lane["false_alarms"], lane["cpu_s"]) == (10, 1, 4 + 3 * 2)


def test_a_summary_that_does_not_list_its_runs_without_faults_can_be_joined() -> None:
    old = of("a", alarms=1)
    for totals in (old["lanes"]["lane"], old["peer_totals"]["peer"]):
        del totals["clean"]
    assert joined(old, of("d"), "ad")["lanes"]["lane"]["tried"] == 20


def test_faults_that_are_none_any_more_leave_the_summary() -> None:
    both = joined(of("gone", "a", "c"), of("d"), "da")
    assert (list(both["detail"]), both["faults"], both["killed"], both["survivors"]) == (["d", "a"], 2, 2, [])
    assert (both["lanes"]["lane"]["killed"], both["peers"]) == (2, {"peer": 1})
    assert restricted(of("gone", "a"), "a")["detail"] == of("a")["detail"]


def test_a_measurement_of_other_lanes_peers_or_torch_cannot_be_joined() -> None:
    made = of("a")
    assert cannot_join(made, ["lane"], ["peer"], "2.0") == []
    assert cannot_join(made, ["lane", "guard"], [], "2.1") == [
        "its lanes are lane, not lane, guard", "its peers are peer, not none", "its torch is 2.0, not 2.1",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"cannot join the published summary: its torch is 2\.0, not 2\.1"):
        joined(made, of("d", torch="2.1"), "ad")


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Publish a summary of all faults except NEW, in two lanes, with one of the peers. Return its file."""
    made = {
        "lanes": {"malloc": {}, "guard": {}}, "peers": {"plain_allclose": 0}, "torch": "2.13",
        "detail": {fault: {"plain_allclose": {}} for fault in EVERY if fault not in NEW},
    }  # fmt: skip
    file = tmp_path / "published.json"
    file.write_text(json.dumps(made))
    monkeypatch.setattr(options, "PUBLISHED", file)
    return file


def names(*arguments: str) -> tuple[list[str], list[str], list[str]]:
    """Return the faults, lanes and peers of a request."""
    session = options.parse(None, list(arguments)).session
    return list(session.faults), [lane.environment.name for lane in session.lanes], list(session.peers)


@pytest.mark.usefixtures("published")
def test_the_faults_that_the_published_summary_lacks_are_tried_in_its_lanes() -> None:
    in_order = sorted(NEW, key=EVERY.index)
    assert names("--unmeasured", "--publish") == (in_order, ["malloc", "guard"], ["plain_allclose"])
    some = ["--faults", NEW[1], "--lanes", "guard,malloc", "--publish"]
    assert names("--unmeasured", *some) == ([NEW[1]], ["malloc", "guard"], ["plain_allclose"])
    assert names("--unmeasured", "--lanes", "pool", "--peers", "none") == (in_order, ["pool"], [])
    assert names()[2] == ["opinfo_device_checks", "plain_allclose", "torchcts"]


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--unmeasured --publish --lanes malloc", "its lanes are malloc, guard, not malloc"),
        ("--unmeasured --publish --peers none", "its peers are plain_allclose, not none"),
        ("--unmeasured --faults gemm_drops_depth_tail,seed_ignored", "covers gemm_drops_depth_tail already"),
        ("--unmeasured --faults seed_ignore", "unknown fault 'seed_ignore'; near: seed_ignored"),
        ("--publish --faults seed_ignored", "covers all faults in all lanes, and --faults or --lanes leaves some out"),
        ("--publish --lanes malloc", "covers all faults in all lanes, and --faults or --lanes leaves some out"),
    ],
)
def test_what_cannot_be_published_is_an_error_before_the_measurement(arguments: str, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        options.parse(None, arguments.split())


def test_a_published_summary_of_another_torch_is_an_error_before_the_measurement(published: Path) -> None:
    published.write_text(json.dumps(json.loads(published.read_text()) | {"torch": "2.6"}))
    with pytest.raises(SystemExit, match=r"its torch is 2\.6, not 2\.13"):
        options.parse(None, ["--unmeasured", "--publish"])


def test_publishing_new_faults_adds_them_to_the_published_summary(
    published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"lane": {"killed_by": "gate"}, "peer": {"killed_by": ""}}
    before = of() | {"torch": "2.13", "detail": {f: rows for f in EVERY if f not in NEW}}
    published.write_text(json.dumps(before))
    made = of(alarms=1) | {"torch": "2.13", "detail": {f: {"lane": {"killed_by": "value"}} for f in NEW}}
    monkeypatch.setattr(Session, "run", lambda _: made)
    monkeypatch.setattr(options, "short", lambda lane, _: "lane" if lane.environment.name == "malloc" else "other")
    monkeypatch.setattr(options, "PEERS", {"peer": Peer("peer")})
    assert kill_rate.main(["--unmeasured"]) == 1
    assert json.loads(published.read_text()) == before
    assert kill_rate.main(["--unmeasured", "--publish"]) == 1
    after = json.loads(published.read_text())
    assert (after["faults"], after["killed"], after["false_alarms"]) == (len(EVERY), len(EVERY), 1)
    assert list(after["detail"]) == list(EVERY)
    capsys.readouterr()


def test_nothing_is_measured_where_the_published_summary_covers_every_fault(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(published.read_text())
    published.write_text(json.dumps(made | {"detail": {fault: {} for fault in EVERY}}))
    assert kill_rate.main(["--unmeasured"]) == 0
    assert capsys.readouterr().out == f"published.json covers all {len(EVERY)} faults: nothing to measure\n"
