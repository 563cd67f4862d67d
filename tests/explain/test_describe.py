"""A failing case as a person reads it."""

from __future__ import annotations

from dataclasses import replace

import expecttest
import torch

from conformance.corpus.model import Arg, ComplexArg, DtypeArg, EnumArg, GeneratorArg
from conformance.explain import describe
from conformance.judging import compare
from conformance.judging.compare import Closeness
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.samples import sample, slot
from tests.two_sides import case_of, judge


def message(*args: Arg, layout: str, variant: str, dtype: str = "float32", route: str = "native") -> str:
    """The text about a case of ``masked_fill_`` in which value and gap are wrong."""
    one = sample("masked_fill_.Scalar", *args, name="own.masking.row.1f37e898")
    cell = CellId("masking", "masked_fill_.Scalar", dtype, layout)
    case = next(c for c in cases(cell, [one]) if c.variant == variant)
    value = compare.exact(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.5]]), "self")
    before = torch.zeros(16, dtype=torch.uint8)
    after = before.clone()
    after[5] = 0xFF
    gap = compare.untouched(before, before, after, torch.zeros(16, dtype=torch.bool), True, "self")
    assert value is not None
    assert gap is not None
    return describe.failure(case, [value, gap], route, "mine")


class TestFailure(expecttest.TestCase):
    def test_each_argument_each_difference_and_how_to_repeat_it(self) -> None:
        self_, mask = slot(0, "self", (2, 3), written=True), slot(1, "mask", (2, 3), "bool")
        self.assertExpectedInline(
            message(self_, mask, -1.5, layout="offset_gap", variant="self"),
            """\
masked_fill_.Scalar (native) in float32, layout offset_gap on self
  self: float32 offset_gap: size [2, 3], stride [5, 1], offset 5, storage 17
  mask: bool contiguous: size [2, 3], stride [3, 1], offset 0, storage 6
  arg 2: -1.5
  value: self: 1 of 2 elements differ, first at [0, 1]: device 2.5, CPU 2.0; distance 0.5 (2.1e+06 ULP); must be equal bit for bit
  untouched: self: 1 bytes outside the view changed, first at byte 5 of 16: 0xff, not 0x00
  repeat: pytest --pyargs conformance --backend mine --case 'ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#own.masking.row.1f37e898@self'
  script: conformance repro --backend mine 'ops/masking.py::masked_fill_.Scalar[float32-offset_gap]#own.masking.row.1f37e898@self'""",  # noqa: E501  # as it is printed
        )

    def test_arguments_that_share_a_storage_say_so(self) -> None:
        a, b = slot(0, "self", (2,)), slot(1, "other", (2,))
        case = next(c for c in cases(CellId("f", "add.Tensor", "bfloat16", "aliased"), [sample("add.Tensor", a, b)]))
        self.assertExpectedInline(
            "\n".join(describe.arguments(case)),
            """\
self: bfloat16 contiguous: size [2], stride [1], offset 0, storage 2
other: bfloat16 contiguous: size [2], stride [1], offset 0, storage 2, over the storage of self""",
        )

    def test_arguments_that_are_no_tensors_are_written_as_one_would_type_them(self) -> None:
        tensors = (slot(0, "tensors[0]", (2,)), slot(1, "tensors[1]", ()))
        args: tuple[Arg, ...] = (
            tensors,
            None, True, 2, -0.5, "mean", (1, 2), DtypeArg(None), DtypeArg("int8"), ComplexArg(1, -2),
            EnumArg("memory_format", "channels_last"), GeneratorArg(7),
        )  # fmt: skip
        one = replace(sample("hand", *args), tensors=tensors)
        case = cases(CellId("f", "hand", "float32", "contiguous"), [one])[0]
        self.assertExpectedInline(
            "\n".join(describe.arguments(case)),
            """\
tensors[0]: float32 contiguous: size [2], stride [1], offset 0, storage 2
tensors[1]: float32 contiguous: size [], stride [], offset 0, storage 1
arg 1: None
arg 2: True
arg 3: 2
arg 4: -0.5
arg 5: 'mean'
arg 6: [1, 2]
arg 7: the cell's dtype
arg 8: torch.int8
arg 9: (1-2j)
arg 10: torch.channels_last
arg 11: a generator seeded with 7""",
        )

    def test_a_native_result_names_its_distance_from_float64_and_what_was_allowed(self) -> None:
        cpu = torch.tensor([1.0, 2.0, 3.0])
        device = torch.tensor([1.0, 2.0, 3.5])
        rule = Closeness(multiple=2, ulps=4, accumulates=True, terms=9)
        found = compare.close(cpu, device, cpu.double() + 1e-9, rule, "result")
        assert found is not None
        self.assertExpectedInline(
            found.message,
            """result: 1 of 3 elements differ, first at [2]: device 3.5, CPU 3.0, float64 3.000000001; distance 0.5 (1.4e+06 ULP); allowed: 2 x CPU's own distance from float64 + 4 ULP of float32 of the largest element, 9 terms""",  # noqa: E501  # as it is printed
        )

    def test_what_a_judge_finds_in_metadata_and_aliasing(self) -> None:
        wrong = (
            lambda x: (x + 1).double(),
            lambda x: (x + 1)[:1],
            lambda x: (x + 1).t().contiguous().t(),
            lambda x: x,
        )
        found = [judge(lambda x: x + 1, w).mismatches[0] for w in wrong]
        self.assertExpectedInline(
            "\n".join(f"{m.check}: {m.message}" for m in found),
            """\
dtype: result: dtype is torch.float64 on the device, torch.float32 on CPU
shape: result: shape is (1, 3) on the device, (2, 3) on CPU
stride: result: stride is (1, 2) on the device, (3, 1) on CPU
aliasing: result: shares the storage of self on the device, has a storage of its own on CPU""",
        )

    def test_what_a_judge_finds_beside_the_results(self) -> None:
        def refusing(x: torch.Tensor) -> torch.Tensor:
            raise ValueError("not today\nnor tomorrow")

        def writing(x: torch.Tensor) -> torch.Tensor:
            x.add_(1)
            return x

        found = [
            *judge(lambda x: x + 1, refusing).mismatches,
            *judge(lambda x: x + 1, writing).mismatches,
            *judge(lambda x: x + 1, lambda x: x.data.as_strided((1,), (1,), 0).fill_(7) * 0 + x + 1,
                   case_of("offset1")).mismatches,
        ]  # fmt: skip
        self.assertExpectedInline(
            "\n".join(f"{m.check}: {m.message}" for m in found),
            """\
error_parity: the device raised ValueError: not today; CPU raised nothing
aliasing: result: shares the storage of self on the device, has a storage of its own on CPU
version: self: version counter is 1 on the device, 0 on CPU
mutation: self: 7 bytes of an argument that the schema does not mark as written changed, first at byte 2 of 24: 0x00, not 0x80
untouched: self: 4 bytes outside the view changed, first at byte 0 of 32: 0x00, not 0xff""",  # noqa: E501  # as it is printed
        )
