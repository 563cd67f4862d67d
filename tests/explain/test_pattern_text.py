"""The pattern of wrong elements as text."""

from __future__ import annotations

import pytest

from conformance.explain import pattern_text


@pytest.mark.parametrize(
    ("step", "said"),
    [(2, "second"), (3, "third"), (4, "4th"), (11, "11th"), (13, "13th"), (21, "21st"), (32, "32nd"), (33, "33rd"),
     (112, "112th"), (1001, "1001st")],
)  # fmt: skip
def test_a_period_is_told_by_its_ordinal(step: int, said: str) -> None:
    rule = {"kind": "flat", "size": 5000, "every": step, "at": 1}
    pattern = {"wrong": 9, "of": 5000, "where": rule, "values": None}
    assert pattern_text.text(pattern) == f"every {said} index from 1 of the flat index"
