"""Similar names for an unknown name."""

from __future__ import annotations

from conformance.support.suggestions import listed, near, unknown


def test_the_nearest_name_comes_first() -> None:
    assert near("masked_fil", ["masked_fill_", "masked_fill", "mm"]) == ["masked_fill", "masked_fill_"]


def test_a_name_that_is_cut_short_is_near_to_all_that_it_begins() -> None:
    lanes = [f"npu-torch{torch}-malloc-{build}" for torch in ("2.8", "2.9") for build in ("asan", "tsan", "release")]
    assert near("npu-torch2.8-malloc", lanes) == [f"npu-torch2.8-malloc-{b}" for b in ("asan", "tsan", "release")]


def test_letter_case_does_not_count() -> None:
    assert near("Float32", ["float32", "int8"]) == ["float32"]


def test_few_known_names_are_all_listed_when_none_is_near() -> None:
    assert unknown("route", "zzz", ["native", "fallback"]) == "unknown route 'zzz'; known: fallback, native"


def test_the_nearest_of_many_names_are_listed_when_none_is_near_and_the_command_that_lists_all() -> None:
    known = [f"op{n}" for n in range(99)]
    said = unknown("overload", "no such op 42", known, "inventory")
    assert said == "unknown overload 'no such op 42'; the nearest of 99: op42, op4, op2; `inventory` lists them"
    assert unknown("overload", "no such op 42", known) == said.rpartition(";")[0]


def test_very_many_names_are_only_counted_when_none_is_near() -> None:
    known = [f"op{n}" for n in range(20_000)]
    assert unknown("overload", "-", known) == "unknown overload '-'; none of the 20000 known names is near"


def test_a_long_list_of_names_is_cut() -> None:
    assert listed([]) == "known: none"
    assert listed(["b", "a"]) == "known: b, a"
    assert listed([f"op{n}" for n in range(99)]).endswith(", op19 and 79 more")
