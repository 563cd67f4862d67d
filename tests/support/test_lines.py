"""One line of a longer text."""

from __future__ import annotations

import pytest

from conformance.support.lines import error_line, first_line, last_line


def test_empty_lines_around_a_text_do_not_count() -> None:
    text = "\n  \nwhat is wrong\nwhere\n\n"
    assert (first_line(text), last_line(text)) == ("what is wrong", "where")


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_a_text_without_a_line_gives_an_empty_one(text: str) -> None:
    assert first_line(text) == last_line(text) == ""


def test_an_error_is_told_by_its_type_and_the_first_line_of_its_message() -> None:
    assert error_line(ValueError("not a number\nException raised from here")) == "ValueError: not a number"


def test_an_error_without_a_message_is_told_by_its_type_alone() -> None:
    assert error_line(ValueError()) == "ValueError"
    assert error_line(None) == ""
