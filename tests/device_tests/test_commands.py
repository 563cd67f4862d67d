"""`expect export` and `expect import`: what they print, and the mistakes that they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.commands import device_test_lists
from conformance.results import expectations, store
from tests.device_tests.test_mapping import OPS, failing
from tests.records import manifest, observed
from tests.report.results import LANE, ran

RULE = '[[rule]]\nop = "acos"\ndtype = "int8"\nstatus = "fail"\nreason = "known here"\n'


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store a run in which four cells fail: PyTorch's tests try two of them."""
    monkeypatch.setattr(device_test_lists, "_opinfo_map", lambda: OPS)
    monkeypatch.chdir(tmp_path)
    cells = (
        failing("acos", "int8-contiguous"), failing("neg_"), failing("neg_", "float32-thread"),
        failing("unheard_of"), observed("div.Tensor"), observed("acos"),
    )  # fmt: skip
    ran(Path("results"), 0, *cells, complete=False)
    Path("rules.toml").write_text(RULE, encoding="utf-8")


def invoke(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(commands, ["expect", *words])
    assert done.exit_code == code, done.output
    return done.output


def test_an_export_says_what_it_lists_and_each_cell_that_it_does_not() -> None:
    assert invoke("export", LANE, "listed.json", "--expected", "rules.toml") == (
        "listed.json: 2 ops of 2 failing cells\n"
        "not listed: 1 cell: PyTorch's tests do not try 'thread'\n"
        "  ops/masking.py::neg_[float32-thread]\n"
        "not listed: 1 cell: no OpInfo calls the overload\n"
        "  ops/masking.py::unheard_of[float32-contiguous]\n"
    )
    assert json.loads(Path("listed.json").read_text(encoding="utf-8"))["ops"] == {
        "acos": [{"kinds": ["plain"], "dtypes": ["int8"], "reason": "known here"}],
        "neg": [
            {"kinds": ["inplace"], "dtypes": ["float32"],
             "reason": "fail (value): ops/masking.py::neg_[float32-contiguous]"},
        ],
    }  # fmt: skip


def test_an_export_of_known_failures_has_no_others() -> None:
    said = invoke("export", LANE, "listed.json", "--expected", "rules.toml", "--known")
    assert said == "listed.json: 1 op of 1 failing cell\n"


def test_an_import_keeps_the_rules_adds_those_of_the_list_and_prints_the_rest() -> None:
    Path("listed.py").write_text(
        "op_overrides = {'neg': [DecorateInfo(unittest.skip('hangs'))], 'div.floor_rounding': [xfail_here],\n"
        "                'acos': [DecorateInfo(unittest.skip(''), dtypes=(torch.bool,))], 'negg': []}\n"
        "op_allowlist = ['negg']\n",
        encoding="utf-8",
    )
    assert invoke("import", "listed.py", LANE, "--expected", "rules.toml") == (
        "rules.toml: 2 rules: 1 kept, 1 new\n"
        "not read: 1 place: not a DecorateInfo\n"
        "  line 1: xfail_here\n"
        "not imported: unknown OpInfo 'negg'; near: neg\n"
        f"without a failing cell in {LANE}: 1 item of the list\n"
        "  acos (bool)\n"
    )
    rules = expectations.load(Path("rules.toml"))
    assert [(rule.op, rule.reason) for rule in rules] == [
        (("acos",), "known here"), (("neg_",), "listed for PyTorch's tests: hangs"),
    ]  # fmt: skip


def test_a_rule_of_an_import_covers_no_cell_that_a_killed_run_did_not_reach() -> None:
    Path("listed.py").write_text("op_overrides = {'neg': [DecorateInfo(unittest.skip('hangs'))]}\n", encoding="utf-8")
    with store.Writer(Path("killed"), manifest(collected=9, complete=True)) as writer:
        writer.append(failing("neg_"))
    invoke("import", "listed.py", "killed", "--expected", "rules.toml")
    *_, rule = expectations.load(Path("rules.toml"))
    assert (rule.op, rule.dtype, rule.layout) == (("neg_",), ("float32",), ("contiguous",))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("export", LANE, "known-failures.py"), "expected the name of a Python module"),
        (("export", LANE, "listed.txt"), "expected the name of a Python module"),
        (("export", LANE, "listed.py", "--allowlist"), "some cells were not selected"),
        (("export", LANE, "absent/listed.py"), "there is no directory absent;"),
        (("export", "no-such-lane", "listed.py"), "no-such-lane"),
        (("import", "rules.toml", LANE), "rules.toml: no list found"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], problem: str) -> None:
    said = invoke(*words, code=2)
    assert problem in said
    assert "Traceback" not in said
