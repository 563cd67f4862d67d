"""The inventory as text."""

from __future__ import annotations

import json

import expecttest

from conformance.explain.inventory_text import as_json, table
from conformance.inventory import Overload
from conformance.vocabulary import Route


def overload(name: str, route: Route, *tags: str, target: bool = True) -> Overload:
    return Overload(name, f"aten::{name}(Tensor self) -> Tensor", tags, True, True, not target, target, route)


OVERLOADS = (
    overload("add.Tensor", Route.NATIVE, "core", "pointwise"),
    overload("fft_c2c", Route.FALLBACK),
    overload("matmul", Route.COMPOSITE, target=False),
    overload("_pin_memory", Route.UNSUPPORTED),
)


class TestTable(expecttest.TestCase):
    def test_a_line_an_overload_and_a_count(self) -> None:
        self.assertExpectedInline(
            table(OVERLOADS),
            """\
overload     route        target  tags
add.Tensor   native       yes     core pointwise
fft_c2c      fallback     yes
matmul       composite
_pin_memory  unsupported  yes
4 overloads (3 targets): native 1 (1), fallback 1 (1), composite 1 (0), unsupported 1 (1)""",
        )

    def test_nothing(self) -> None:
        self.assertExpectedInline(
            table(()),
            """\
overload  route  target  tags
0 overloads (0 targets): none""",
        )


def test_json_holds_every_field() -> None:
    first = json.loads(as_json(OVERLOADS))[0]
    assert first["name"] == "add.Tensor"
    assert first["route"] == "native"
    assert first["schema"].startswith("aten::add.Tensor(")
