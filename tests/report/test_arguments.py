"""The drawing of a failing case's arguments: which elements of which storage are wrong."""

from __future__ import annotations

import pytest

from conformance import layouts
from conformance.records import Mismatch, PlacedArgument
from conformance.report import arguments
from conformance.vocabulary import Check
from tests.records import elements
from tests.report.results import GAP

TENSOR = PlacedArgument("self", "float32", "offset_gap", (2, 3), (5, 1), 5, 17)


def test_a_tensor_is_drawn_with_its_figures_and_a_plain_value_as_text() -> None:
    drawn = arguments.drawn(TENSOR, ())
    assert (drawn["size"], drawn["stride"], drawn["offset"], drawn["storage"]) == ((2, 3), (5, 1), 5, 17)
    assert arguments.drawn(PlacedArgument("arg 2", text="1.5"), ()) == {"name": "arg 2", "text": "1.5"}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (elements((1, 2)), [12]),
        (GAP, [8]),
        (elements((1, 2), subject="other"), []),
        (elements((2,)), []),
        (Mismatch(Check.UNTOUCHED, "self", {**GAP.facts, "of": 0}), []),
        (Mismatch(Check.VERSION, "self", {"kind": "version", "device": 0, "cpu": 1}), []),
    ],
    ids=["element", "byte", "of another", "of another size", "of an empty storage", "no element"],
)
def test_the_first_wrong_element_is_marked_where_it_is_in_the_storage(found: Mismatch, wrong: list[int]) -> None:
    assert arguments.drawn(TENSOR, (found,))["wrong"] == wrong


def test_all_findings_about_a_tensor_are_marked_once() -> None:
    assert arguments.drawn(TENSOR, (elements((1, 2)), GAP, elements((1, 2))))["wrong"] == [8, 12]


def test_a_layout_of_one_tensor_has_an_example() -> None:
    assert {name for name in layouts.LAYOUTS if arguments.example(name)} == set(layouts.PLACERS)
