"""The parts of names in a sample."""

from __future__ import annotations

import pytest

from conformance.corpus.model import SampleName, TensorSlot


def test_a_sample_name_is_source_label_and_digest_and_labels_have_dots() -> None:
    name = SampleName("opinfo", "masked_fill.inplace", "157ae415")
    assert str(name) == "opinfo.masked_fill.inplace.157ae415"
    assert SampleName.parse(str(name)) == name


def test_a_sample_name_with_two_parts_raises() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        SampleName.parse("call.3")


def test_a_tensor_in_a_list_belongs_to_the_argument_of_the_list() -> None:
    of_a_list, alone = (TensorSlot(0, name, (2,), None, written=False) for name in ("tensors[1]", "self"))
    assert (of_a_list.argument, alone.argument) == ("tensors", "self")
