"""Rules of known failures: which cells they cover, what they judge, when they are stale, how a run rewrites them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.explain import describe
from conformance.records import Observation
from conformance.results import expectations as ex
from conformance.results.expectations import KnownFailure, Names, Verdict
from conformance.support.toml_table import TomlError
from conformance.vocabulary import Status
from tests.records import observed

LANE = "demo-torch2.8-malloc-release"
KNOWN = Names(("masked_fill_.Scalar", "masked_fill.Scalar", "mm"), ("float32", "bool"), ("contiguous", "expanded"))
MASKED = KnownFailure(op=("masked_fill*",), dtype=("bool",), reason="known", link="https://example.org/1")


def verdict(cell: Observation, *rules: KnownFailure) -> Verdict:
    return ex.judge(cell, rules, LANE).verdict


def test_a_failure_without_a_rule_is_unexpected() -> None:
    assert verdict(observed("mm", status=Status.FAIL)) is Verdict.UNEXPECTED_FAILURE


@pytest.mark.parametrize("status", [Status.PASS, Status.UNSUPPORTED, Status.NOT_REACHED])
def test_a_cell_that_does_not_fail_is_as_expected(status: Status) -> None:
    assert verdict(observed("mm", status=status), MASKED) is Verdict.AS_EXPECTED


def test_a_failure_that_a_rule_describes_is_expected() -> None:
    assert verdict(observed("masked_fill_.Scalar", "bool-expanded", Status.FAIL), MASKED) is Verdict.EXPECTED_FAILURE


def test_a_pass_under_a_rule_is_unexpected() -> None:
    assert verdict(observed("masked_fill_.Scalar", "bool-expanded"), MASKED) is Verdict.UNEXPECTED_PASS


def test_a_pass_of_some_of_a_cell_s_cases_does_not_contradict_a_rule() -> None:
    assert verdict(observed("masked_fill_.Scalar", "bool-expanded", partial=True), MASKED) is Verdict.AS_EXPECTED


def test_a_failure_among_some_of_a_cell_s_cases_is_judged_like_any_other() -> None:
    failing = observed("mm", status=Status.FAIL, partial=True)
    assert verdict(failing) is Verdict.UNEXPECTED_FAILURE
    assert verdict(failing, KnownFailure(op=("mm",), reason="known")) is Verdict.EXPECTED_FAILURE


def test_a_crash_is_not_the_failure_that_a_rule_describes() -> None:
    crash = observed("masked_fill_.Scalar", "bool-expanded", Status.CRASH)
    assert verdict(crash, MASKED) is Verdict.UNEXPECTED_FAILURE


def test_every_failed_check_has_to_be_in_the_rule() -> None:
    rule = KnownFailure(op=("mm",), check=("stride",), reason="known")
    assert verdict(observed("mm", status=Status.FAIL, checks=("stride",)), rule) is Verdict.EXPECTED_FAILURE
    assert verdict(observed("mm", status=Status.FAIL, checks=("stride", "value")), rule) is Verdict.UNEXPECTED_FAILURE


def test_a_rule_of_another_lane_judges_nothing() -> None:
    rule = KnownFailure(op=("mm",), lane=("*-torch2.13-*",), reason="known")
    assert verdict(observed("mm", status=Status.FAIL), rule) is Verdict.UNEXPECTED_FAILURE


def test_a_rule_is_stale_when_it_covers_no_cell_of_its_lane() -> None:
    cells = [(observed("mm").cell, "native")]
    elsewhere = KnownFailure(op=("mm",), lane=("*-torch2.13-*",), reason="known")
    assert ex.stale([MASKED, KnownFailure(op=("mm",), reason="known"), elsewhere], cells, LANE) == [MASKED]


def test_rules_are_added_for_the_failing_cells_that_have_a_reason_and_for_no_other() -> None:
    cells = [observed("mm", status=Status.FAIL), observed("neg", status=Status.FAIL), observed("neg", "bool-step2")]
    added = ex.add([MASKED], cells, LANE, True, lambda o: "listed" if o.cell.overload == "neg" else "")
    assert added == (
        MASKED,
        KnownFailure(("neg",), ("float32",), ("contiguous",), lane=(LANE,), check=("value",), reason="listed"),
    )
    assert ex.add(added, cells, LANE, True, lambda o: "listed" if o.cell.overload == "neg" else "") == added


def test_names_that_match_nothing_are_told_with_near_ones() -> None:
    rule = KnownFailure(
        ("masked_fil_.Scalar",), ("float23",), ("expandd",), ("nativ",), check=("valeu",), reason="known"
    )
    assert [line.partition(": ")[2] for line in ex.mistakes([rule], KNOWN, LANE)] == [
        "unknown overload 'masked_fil_.Scalar'; near: masked_fill_.Scalar, masked_fill.Scalar",
        "unknown dtype 'float23'; near: float32",
        "unknown layout 'expandd'; near: expanded",
        "unknown route 'nativ'; near: native",
        "unknown check 'valeu'; near: value",
    ]
    assert ex.mistakes([MASKED], KNOWN, LANE) == []


def read(tmp_path: Path, text: str) -> tuple[KnownFailure, ...]:
    file = tmp_path / "demo.toml"
    file.write_text(text)
    return ex.load(file)


def test_a_file_is_read_and_written_back_the_same(tmp_path: Path) -> None:
    rules = (
        MASKED,
        KnownFailure(op=("mm",), check=("value", "stride"), status=Status.CRASH, reason='a "quoted" reason'),
    )
    assert read(tmp_path, ex.dump(rules, "Known failures.")) == rules
    assert ex.dump(()) == ""


def test_no_file_is_no_rules(tmp_path: Path) -> None:
    assert ex.load(tmp_path / "none.toml") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[rule]]\nstatus = "fail"\nreason = "x"', "rule[0].op: missing"),
        ('[[rule]]\nop = "mm"\nstatus = "unsupported"\nreason = "x"', "'unsupported' is not one of fail, error, crash"),
        ('[[rule]]\nop = "mm"\nstatus = "fail"\nreason = ""', "rule[0].reason: is empty"),
        ('[[rule]]\nop = []\nstatus = "fail"\nreason = "x"', "rule[0].op: is empty"),
        ('[[rule]]\nop = "mm"\nlayuot = "x"\nstatus = "fail"\nreason = "x"', "layuot: unknown key (near: layout)"),
        ('[[rules]]\nop = "mm"', "rules: unknown key (near: rule)"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TomlError) as e:
        read(tmp_path, text)
    assert message in str(e.value)


RUN = (
    observed("mm", "float32-contiguous", Status.FAIL, checks=("stride",)),
    observed("mm", "bool-contiguous", Status.FAIL, checks=("stride",)),
    observed("cat", "float32-contiguous", Status.FAIL),
    observed("cat", "float32-expanded"),
    observed("cat", "bool-contiguous", Status.CRASH, signal="SIGSEGV"),
    observed("add", status=Status.ERROR),
)


def test_an_update_writes_rules_as_wide_as_what_failed_alike() -> None:
    by_op = {(r.op, r.status): r for r in ex.update((), RUN, LANE, complete=True, reason=describe.ended)}
    assert len(by_op) == 3
    mm = by_op[("mm",), Status.FAIL]
    assert (mm.dtype, mm.layout, mm.check, mm.lane) == (("*",), ("*",), ("stride",), (LANE,))
    cat = by_op[("cat",), Status.FAIL]
    assert (cat.dtype, cat.layout) == (("float32",), ("contiguous",))
    assert cat.reason == "value: result: 1.5 on the device, 2.5 on CPU"
    assert by_op[("cat",), Status.CRASH].reason == "SIGSEGV"


def test_after_an_update_every_verdict_but_the_suite_s_own_errors_is_good() -> None:
    rules = ex.update((), RUN, LANE, complete=True, reason=describe.ended)
    assert [o.cell.overload for o in RUN if ex.judge(o, rules, LANE).verdict.is_failure] == ["add"]


def test_an_update_keeps_rules_that_hold_and_reasons_written_by_hand() -> None:
    holds = KnownFailure(op=("mm",), reason="by hand", check=("stride",))
    outlived = KnownFailure(op=("cat",), reason="a person's words", link="https://example.org/2")
    rules = ex.update((holds, outlived), RUN, LANE, complete=True, reason=describe.ended)
    assert rules[0] == holds
    assert outlived not in rules
    narrowed = next(r for r in rules if r.op == ("cat",) and r.status is Status.FAIL)
    assert (narrowed.reason, narrowed.link) == ("a person's words", "https://example.org/2")


def test_an_update_from_a_part_of_the_cells_keeps_rules_about_the_others() -> None:
    assert MASKED in ex.update((MASKED,), RUN, LANE, complete=False, reason=describe.ended)
    assert MASKED not in ex.update((MASKED,), RUN, LANE, complete=True, reason=describe.ended)


def test_an_update_keeps_a_rule_whose_cell_passes_some_of_its_cases_alone() -> None:
    passing = observed("masked_fill_.Scalar", "bool-expanded")
    for complete in (True, False):
        assert ex.update([MASKED], [replace(passing, partial=True)], LANE, complete, str) == (MASKED,)
        assert ex.update([MASKED], [passing], LANE, complete, str) == ()


def test_an_update_keeps_a_rule_about_cells_that_were_not_reached() -> None:
    lost = observed("masked_fill_.Scalar", "bool-expanded", Status.NOT_REACHED)
    unsupported = observed("masked_fill_.Scalar", "bool-contiguous", Status.UNSUPPORTED)
    native = replace(MASKED, route=("native",))
    for seen in ([lost], [lost, unsupported], [replace(lost, route="")]):
        assert ex.update([native], seen, LANE, complete=True, reason=str) == (native,)
        assert ex.stale([native], [(o.cell, o.route) for o in seen], LANE) == []
    assert ex.update([MASKED], [unsupported], LANE, complete=True, reason=str) == ()


def test_a_new_rule_does_not_cover_cells_that_were_not_reached() -> None:
    failing, lost = observed("mm", status=Status.FAIL), observed("mm", "float64-contiguous", Status.NOT_REACHED)
    (rule,) = ex.update((), [failing, lost], LANE, complete=True, reason=describe.ended)
    assert (rule.covers(failing.cell, "native"), rule.covers(lost.cell, "native")) == (True, False)


def test_an_update_keeps_the_rules_of_other_lanes() -> None:
    elsewhere = KnownFailure(op=("mm",), lane=("*-torch2.13-*",), reason="known")
    assert elsewhere in ex.update((elsewhere,), RUN, LANE, complete=True, reason=describe.ended)


def test_a_new_rule_s_reason_is_what_differs() -> None:
    failing = observed("mm", status=Status.FAIL, checks=("stride",))
    (rule,) = ex.update((), (failing,), LANE, complete=False, reason=describe.ended)
    assert rule.reason == "stride: result: 1.5 on the device, 2.5 on CPU"


def test_rules_that_cannot_be_written_leave_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "expected" / "demo.toml"
    ex.save(file, [MASKED], "demo")

    def full(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(text[:10].encode(encoding))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        ex.save(file, [], "demo")
    assert (ex.load(file), [*file.parent.iterdir()]) == ((MASKED,), [file])
