"""The ids of cells and cases, and their parsing."""

from __future__ import annotations

import pytest

from conformance.vocabulary import CASE_ID, CaseId, CellId

CELL = CellId("masking", "masked_fill_.Scalar", "float32", "expanded")


@pytest.mark.parametrize("variant", ["", "all", "self=other", "tensors[1]"])
def test_a_case_s_id_comes_back_from_its_text(variant: str) -> None:
    case = CaseId(CELL, "opinfo.masked_fill.3", variant)
    assert CaseId.parse(str(case)) == case
    assert str(case).startswith(f"{CELL}#opinfo.masked_fill.3")


@pytest.mark.parametrize("text", ["", str(CELL), f"{CELL}#", f"{CELL}#@self", "masked_fill_#a@b", f"x{CASE_ID}"])
def test_text_that_is_no_case_id_parses_to_none(text: str) -> None:
    assert CaseId.parse(text) is None


def test_the_id_that_messages_show_is_one() -> None:
    assert CaseId.parse(CASE_ID) == CaseId(CELL, "sample", "self")
