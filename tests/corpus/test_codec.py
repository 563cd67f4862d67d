"""Samples stay equal when they are written and read again."""

from __future__ import annotations

import json
from dataclasses import replace

from conformance.corpus.codec import decode, encode
from conformance.corpus.model import (
    ComplexArg,
    DeviceArg,
    DtypeArg,
    EnumArg,
    GeneratorArg,
    Sample,
    TensorSlot,
)

SELF = TensorSlot(0, "self", (2, 0), None, written=True, pool="float32", start=7)
OTHER = TensorSlot(1, "tensors[1]", (), "int64", written=False, pool="int64", start=0, same_as="self")
SAMPLE = Sample(
    name="own.masking.row.0123abcd",
    overload="op.Scalar",
    base="float32",
    dtypes=("float32", "bfloat16"),
    args=(SELF, None, True, 3, float("inf"), "sum", (1, (OTHER, None)), ComplexArg(1.0, -2.0)),
    kwargs=(
        ("dtype", DtypeArg(None)),
        ("out_dtype", DtypeArg("int64")),
        ("device", DeviceArg()),
        ("layout", EnumArg("layout", "strided")),
        ("generator", GeneratorArg(5)),
    ),
    tensors=(SELF, OTHER),
    raises=True,
)


def test_a_sample_survives_being_written_and_read() -> None:
    row = json.loads(json.dumps(encode(SAMPLE, 1)))
    assert decode("op.Scalar", row, [("bool",), SAMPLE.dtypes]) == SAMPLE


def test_a_generated_sample_keeps_its_axis_and_whom_it_is_for() -> None:
    for generated in (replace(SAMPLE, axis="sizes"), replace(SAMPLE, axis="values", own_kernel=True)):
        row = json.loads(json.dumps(encode(generated, 0)))
        assert decode("op.Scalar", row, [SAMPLE.dtypes]) == generated


def test_arguments_point_to_the_sample_s_own_slots() -> None:
    sample = decode("op.Scalar", encode(SAMPLE, 0), [SAMPLE.dtypes])
    assert sample.args[0] is sample.tensors[0]
