"""A message read back: how the arguments lie, and what is neither argument nor command."""

from __future__ import annotations

from typing import Any

import pytest

from conformance import layouts
from conformance.explain import describe
from conformance.report import arguments
from tests.report.results import MESSAGE

CASE = "ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#opinfo.masked_fill.3@self"


def test_a_message_is_taken_apart() -> None:
    found = arguments.parts(MESSAGE, CASE)
    assert [a["text"] for a in found["arguments"] if "tensor" not in a] == ["arg 2: 1.5"]
    assert found["said"] == [
        "untouched: self: 8 bytes outside the view changed, first at byte 32 of 68: 0x00, not 0xff"
    ]
    assert found["repeat"].startswith("pytest ")
    assert found["script"].startswith("conformance repro ")
    first = found["arguments"][0]["tensor"]
    assert (first["size"], first["stride"], first["offset"], first["storage"]) == ([2, 3], [5, 1], 5, 17)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("value: x: 2 of 6 elements differ, first at [1, 2]: device 1", [12]),
        ("untouched: x: 4 bytes outside the view changed, first at byte 32 of 68: 0x00, not 0xff", [8]),
        ("value: y: 2 of 6 elements differ, first at [1, 2]: device 1", []),
        ("value: x: 2 of 6 elements differ, first at [2]: device 1", []),
        ("untouched: x: first at byte 1 of 0", []),
    ],
)
def test_what_a_message_calls_wrong_is_found_in_the_storage(said: str, wrong: list[int]) -> None:
    line = "  x: float32 offset_gap: size [2, 3], stride [5, 1], offset 5, storage 17"
    message = f"head\n{line}\n  {said}\n  repeat: a\n  script: b"
    assert arguments.parts(message, CASE)["arguments"][0]["tensor"]["wrong"] == wrong


@pytest.mark.parametrize("layout", layouts.PLACERS)
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (3, 4), (4,)], ids=str)
def test_what_describe_writes_of_a_placement_is_read_back(layout: str, shape: tuple[int, ...]) -> None:
    placed = layouts.place(layout, shape)
    if placed is None:
        return
    line = f"  tensors[0]: complex64 {describe.figures(placed)}, over the storage of self"
    message = f"head\n{line}\n  value: x\n  repeat: a\n  script: b"
    tensor = arguments.parts(message, CASE)["arguments"][0]["tensor"]
    read = (tuple(tensor["size"]), tuple(tensor["stride"]), tensor["offset"], tensor["storage"], tensor["bit"])
    assert read == (placed.size, placed.stride, placed.offset, placed.storage, placed.bit)
    assert (tensor["name"], tensor["layout"], tensor["over"]) == ("tensors[0]", layout, "self")


def test_an_overlapping_view_begins_one_element_later() -> None:
    line = "  b: float32 contiguous: size [2], stride [1], offset 0, storage 3, over the storage of a"
    message = f"head\n{line}\n  repeat: a\n  script: b"
    offsets = [
        arguments.parts(message, f"ops/x.py::y[float32-aliased]#s@a{sign}b")["arguments"][0]["tensor"]["offset"]
        for sign in "=~"
    ]
    assert offsets == [0, 1]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "the process died: SIGSEGV, on the device side\nFatal Python error",
        "head\n  x: float32 contiguous: size [9"
        + "9" * 40
        + "], stride [1], offset 0, storage 1\n  repeat: a\n  script: b",
        "head\n  x: float32 contiguous: size [1, 2], stride [1], offset 0, storage 1\n  repeat: a\n  script: b",
        "head\n  x: float32 contiguous: size [, ], stride [,], offset 0, storage 1\n  repeat: a\n  script: b",
    ],
    ids=["empty", "crash", "huge", "unequal", "no numbers"],
)
def test_what_is_no_tensor_is_text(message: str) -> None:
    found: dict[str, Any] = arguments.parts(message, CASE)
    assert not any("tensor" in a for a in found["arguments"])
    kept = [found["head"], *(a["text"] for a in found["arguments"]), *found["said"]]
    assert kept == [
        line.removeprefix("  ") for line in message.split("\n") if not line.startswith(("  repeat", "  script"))
    ]


def test_a_layout_of_one_tensor_has_an_example() -> None:
    assert {name for name in layouts.LAYOUTS if arguments.example(name)} == set(layouts.PLACERS)
