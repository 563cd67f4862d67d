"""Interrupted runs: whether a run can continue one, and where its observations are kept if it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.records import Observation
from conformance.results import resume, store
from conformance.vocabulary import Status
from tests.records import manifest, observed

CELLS = (observed("mm"), observed("cat"), observed("fft"))
ALL = manifest(collected=3, cells=resume.fingerprint(str(o.cell) for o in CELLS))


def ran(directory: Path, *seen: Observation, ended: bool = False) -> Path:
    with store.Writer(directory, ALL) as writer:
        for observation in seen:
            writer.append(observation)
        if ended:
            counts = {s.value: sum(o.status is s for o in seen) for s in Status}
            writer.finish({"by_status": counts})
    return directory


NEVER = observed("fft", status=Status.NOT_REACHED)


def test_a_run_that_was_killed_is_interrupted(tmp_path: Path) -> None:
    assert resume.interrupted(ran(tmp_path, *CELLS[:2]))


def test_a_run_that_ended_with_cells_not_reached_is_interrupted(tmp_path: Path) -> None:
    assert resume.interrupted(ran(tmp_path, *CELLS[:2], NEVER, ended=True))


@pytest.mark.parametrize("seen", [CELLS, (NEVER,)])
def test_a_run_that_saw_all_or_nothing_is_not_interrupted(tmp_path: Path, seen: tuple[Observation, ...]) -> None:
    assert not resume.interrupted(ran(tmp_path, *seen, ended=True))
    assert not resume.interrupted(tmp_path / "nowhere")


def test_an_interrupted_run_is_set_aside_and_replaces_no_other(tmp_path: Path) -> None:
    kept = [resume.set_aside(ran(tmp_path, *CELLS[:n])) for n in (1, 2)]
    assert kept == [tmp_path / "observations.1.jsonl", tmp_path / "observations.2.jsonl"]
    assert [len(store.read(path).observations) for path in kept if path] == [1, 2]
    assert resume.set_aside(tmp_path) is None


def test_the_cells_that_were_observed_are_known_and_the_others_are_not(tmp_path: Path) -> None:
    before, seen = resume.observed(ran(tmp_path, *CELLS[:1], NEVER), ALL)
    assert before == ALL
    assert seen == {str(CELLS[0].cell): CELLS[0]}


def test_where_nothing_ran_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert resume.observed(tmp_path, ALL) == (None, {})


@pytest.mark.parametrize("given", [{"seed": 1}, {"torch": "2.9.0"}, {"backend_commit": "x"}, {"corpus": "sha256:2"}])
def test_resume_of_another_run_is_an_error_that_names_the_differences(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(resume.ResumeError) as e:
        resume.observed(ran(tmp_path, *CELLS[:1]), manifest(**{"collected": 3, **given}))
    ((name, value),) = given.items()
    assert f"{name} {getattr(ALL, name)} then, {value} now" in str(e.value)
    assert "run without --resume to begin a new run" in str(e.value)


def test_resume_of_another_selection_with_as_many_cells_is_an_error(tmp_path: Path) -> None:
    other = manifest(collected=3, cells=resume.fingerprint(["a", "b", "c"]))
    with pytest.raises(resume.ResumeError, match="another selection: 3 cells then, 3 now"):
        resume.check(tmp_path, ALL, other)
    resume.check(tmp_path, ALL, ALL)
