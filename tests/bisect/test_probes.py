"""One run of a case or a script: the outcome for each end, with a fake suite process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from conformance.bisect.places import Place
from conformance.bisect.probes import CaseProbe, ScriptProbe
from conformance.bisect.processes import Processes
from conformance.bisect.search import Answer
from conformance.bisect.signature import ABSENT, ProbeOutcome, Signature, answer

CELL = "ops/masking.py::neg[float32-contiguous]"
CASE = f"{CELL}#a"

# A stand-in for the suite's process: it ends as ENDS says, and writes a run as the plugin does.
STAND_IN = """\
import json, os, pathlib, sys, time
from dataclasses import replace
from conformance.results import store
from conformance.records import CaseFailure, Mismatch
from conformance.support.exit_codes import Exit
from conformance.vocabulary import Check, Status
from tests.records import manifest, observed

ends = os.environ["ENDS"]
pathlib.Path(os.environ["ASKED"]).write_text(json.dumps([sys.argv[1:], os.environ.get("MODE")]))
if ends == "script":
    print("import torch")
elif ends == "no such case":
    sys.exit(print("ERROR: --case: unknown case 'x'") or int(Exit.UNKNOWN_CASE))
elif ends == "late":
    time.sleep(600)
elif ends == "dies":
    sys.exit("ImportError: undefined symbol: _ZN3c10")
else:
    facts = {{"kind": "elements", "dtype": "float32", "wrong": 3}}
    failures = (CaseFailure("{case}", (Mismatch(Check.VALUE, "result", facts),)),)
    failed = ends != "pass"
    given = {{"failures": failures}} if failed else {{}}
    seen = replace(observed("neg", status=Status(ends), checks=(), cases=1, compared=1, reason="why"), **given)
    with store.Writer(pathlib.Path("results/bisect"), manifest(corpus="sha256:1", lane="bisect")) as writer:
        writer.append(seen)
        writer.finish({{}})
    sys.exit(failed)
"""


@pytest.fixture
def place(tmp_path: Path) -> Callable[[str], Place]:
    """Return a function that makes a place whose Python ends as ``ends`` says."""
    (tmp_path / "stand_in.py").write_text(STAND_IN.format(case=CASE))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "stand_in.py"} "$@"\n')
    python.chmod(0o755)

    def make(ends: str) -> Place:
        variables = {
            "ENDS": ends,
            "ASKED": str(tmp_path / "asked"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        return Place(str(python), tmp_path, variables, "a build")

    return make


def probe(**given: object) -> CaseProbe:
    asked = {"backend": "demo", "seed": 20, "timeout": 600.0, **given}
    return CaseProbe(Processes(), **asked)  # type: ignore[arg-type]


def test_a_case_that_passes_is_good(place: Callable[[str], Place]) -> None:
    seen = probe().run(place("pass"), CASE)
    assert (seen.passed, answer(seen, None)) == (True, Answer.GOOD)
    assert seen.output == f"{CASE}: pass (1 compared)"


def test_a_case_that_fails_has_its_differences_as_signature(place: Callable[[str], Place]) -> None:
    seen = probe().run(place("fail"), CASE)
    assert seen.signature == Signature("fail", findings=(("value", "result", "elements", "float32"),))
    assert "value: result: " in seen.output
    assert answer(seen, None) is Answer.BAD


@pytest.mark.parametrize(
    ("ends", "judged", "said"),
    [
        ("dies", False, "undefined symbol"),  # for example, the backend is built for another torch
        ("error", False, "neg (native)"),
        ("no such case", True, "--case: unknown case 'x'"),
    ],
)
def test_a_run_without_a_result_of_the_op_is_not_bad(
    place: Callable[[str], Place], ends: str, judged: bool, said: str
) -> None:
    seen = probe().run(place(ends), CASE)
    assert (seen.passed, seen.judged) == (False, judged)
    assert said in seen.output
    assert answer(seen, Signature("fail")) is Answer.UNKNOWN


def test_a_version_without_the_case_is_told_from_one_in_which_it_fails(place: Callable[[str], Place]) -> None:
    seen = probe().run(place("no such case"), CASE)
    assert seen.signature == Signature(ABSENT)
    assert answer(seen, Signature("fail"), any_failure=True) is Answer.UNKNOWN


def test_a_case_that_does_not_end_is_a_timeout(place: Callable[[str], Place]) -> None:
    seen = probe(timeout=0.5).run(place("late"), CASE)
    assert seen.signature == Signature("timeout")
    assert seen.seconds < 300


def test_the_same_case_of_another_corpus_is_another_question(place: Callable[[str], Place]) -> None:
    assert probe(corpus="sha256:1").run(place("fail"), CASE).judged
    seen = probe(corpus="sha256:2").run(place("fail"), CASE)
    assert not seen.judged
    assert "another corpus, sha256:1" in seen.output


def test_the_suite_is_asked_for_this_case_in_this_environment(place: Callable[[str], Place], tmp_path: Path) -> None:
    probe(variables=(("MODE", "guard"),)).run(place("pass"), CASE)
    asked = (tmp_path / "asked").read_text()
    for part in ('"--case", "' + CASE, '"--backend", "demo"', '"--seed", "20"', '"guard"]'):
        assert part in asked


def test_the_command_that_repeats_a_run_can_be_pasted() -> None:
    told = probe(variables=(("MODE", "a b"),)).command(CASE)
    assert told == f"MODE='a b' pytest --pyargs conformance --backend demo --seed 20 --case '{CASE}'"


def test_the_minimal_script_is_what_repro_prints_and_none_where_it_fails(place: Callable[[str], Place]) -> None:
    assert probe().minimal(place("script"), CASE) == "import torch\n"
    assert probe().minimal(place("dies"), CASE) == ""


# Scripts -----------------------------------------------------------------------------------------------------------


def script(command: str, directory: Path, variables: Mapping[str, str] | None = None) -> ProbeOutcome:
    made = ScriptProbe(Processes(), 60.0, (("MODE", "guard"),))
    return made.run(Place(sys.executable, directory, variables or {}, ""), command)


@pytest.mark.parametrize(("code", "said"), [(0, Answer.GOOD), (1, Answer.BAD), (77, Answer.BAD), (125, Answer.UNKNOWN)])
def test_a_script_is_judged_by_its_exit_code(tmp_path: Path, code: int, said: Answer) -> None:
    assert answer(script(f"exit {code}", tmp_path), None) is said


def test_a_script_runs_in_the_point_with_its_variables(tmp_path: Path) -> None:
    seen = script("echo $PWD $MODE $BISECT_POINT", tmp_path, {"BISECT_POINT": "2.8"})
    assert seen.output == f"{tmp_path} guard 2.8"
