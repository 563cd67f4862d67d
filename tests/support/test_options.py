"""Option values: known names, similar names, and selections without cells."""

from __future__ import annotations

import pytest
from _pytest.mark import KeywordMatcher
from _pytest.mark.expression import Expression

from conformance.support import options
from conformance.support.options import OptionError

KNOWN = ("float16", "float32", "int8")


def test_names_are_split_at_commas() -> None:
    assert options.names("--dtypes", "dtype", "float32, int8,", KNOWN) == frozenset({"float32", "int8"})


def test_an_option_not_given_chooses_nothing() -> None:
    assert options.names("--dtypes", "dtype", None, KNOWN) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("flaot32", "--dtypes: unknown dtype 'flaot32'; near: float32"),
        ("int8,zz", "--dtypes: unknown dtype 'zz'; known: float16, float32, int8"),
        (",", "--dtypes: expected at least one dtype; known: float16, float32, int8"),
    ],
)
def test_an_unknown_name_in_an_option_is_an_error_that_lists_near_names(given: str, said: str) -> None:
    with pytest.raises(OptionError) as raised:
        options.names("--dtypes", "dtype", given, KNOWN)
    assert str(raised.value) == said


@pytest.mark.parametrize("given", [0.0, -1.0, float("nan"), float("inf")])
def test_seconds_are_positive_and_finite(given: float) -> None:
    with pytest.raises(OptionError, match=r"--cell-timeout: expected a positive number of seconds, got"):
        options.seconds("--cell-timeout", given)
    assert options.seconds("--cell-timeout", 0.5) == 0.5


@pytest.mark.parametrize("given", ["mm", "masked_fill_.Scalar and not (float32-step2 or int8)", "x[int8] or not y"])
def test_an_expression_of_names_is_accepted(given: str) -> None:
    assert options.keyword(given)


NAMES = ("ops/masking.py", "masked_fill_.Scalar[float32-step2]")


@pytest.mark.parametrize(
    ("given", "selects"),
    [
        ("masked_fill", True), ("MASKED_fill", True), ("mm", False), ("not mm", True), ("masking and step2", True),
        ("scalar[float32", True), ("masked_fill and not step2", False), ("mm or float32-step2]", True),
        ("not (mm or int8) and ops/masking.py", True), ("not not mm", False),
    ],
)  # fmt: skip
def test_an_expression_selects_what_has_names_that_contain_its_words(given: str, selects: bool) -> None:
    keywords = options.keyword(given)
    assert keywords
    assert keywords.selects(NAMES) == selects
    assert Expression.compile(given).evaluate(KeywordMatcher(set(NAMES))) == selects


@pytest.mark.parametrize(
    ("given", "may"),
    [
        ("step2", True), ("not step2", True), ("mm and step2", False), ("mm or step2", True), ("mm", False),
        ("masking and not step2", True), ("not masking", False), ("not (masking or step2)", False),
        ("not (masking and step2)", True),
    ],
)  # fmt: skip
def test_an_expression_may_select_something_if_words_that_nobody_knows_yet_decide(given: str, may: bool) -> None:
    keywords = options.keyword(given)
    assert keywords
    assert keywords.may_select(["ops/masking.py"], lambda word: word == "step2") == may


def test_without_words_there_is_no_expression() -> None:
    assert options.keyword("") is None
    assert options.keyword("  ") is None


@pytest.mark.parametrize("given", ["mm and", "(mm", "mm add", "mm(add)", "masked*", "mm == add", "()"])
def test_an_invalid_expression_of_names_is_an_error(given: str) -> None:
    with pytest.raises(OptionError, match=r"-k .* expected names joined by and, or, not and parentheses"):
        options.keyword(given)


def test_a_selection_that_leaves_nothing_lists_what_is_near() -> None:
    said = options.nothing_left(["conformance", "-k", "mm and maskd_fill"], "mm and maskd_fill", ["mm", "masked_fill"])
    assert said == (
        "no cell is selected by: conformance -k 'mm and maskd_fill'; "
        "-k: no name contains 'maskd_fill', near: masked_fill"
    )


def test_without_a_wrong_word_only_the_selection_is_named() -> None:
    assert options.nothing_left(["conformance", "--route", "native"], "", ["mm"]) == (
        "no cell is selected by: conformance --route native"
    )


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ("int8", True),
        ("float16", False),
        ("int8 and not float16", True),
        ("not (int8 or float32)", False),
        ("float16 or int8 and not float32", True),
        (" float16 and int8 or float32 ", False),
    ],
)
def test_an_expression_of_markers_selects_what_has_them(given: str, chosen: bool) -> None:
    assert options.selects(options.markers(given, KNOWN), ["int8", "native"]) is chosen


@pytest.mark.parametrize("given", ["int8 and", "(int8", "int8 float32", "int8()", "int8 == float32", "1", "None", ""])
def test_an_invalid_expression_of_markers_is_an_error(given: str) -> None:
    with pytest.raises(OptionError, match=r"-m .* expected names of markers joined by and, or, not and parentheses"):
        options.markers(given, KNOWN)


def test_an_unknown_marker_is_refused_with_what_is_near() -> None:
    with pytest.raises(OptionError, match=r"^-m: unknown marker 'flaot32'; near: float32$"):
        options.markers("int8 and not flaot32", KNOWN)
