"""The recorded models that ship with the suite: readable, consistent, small, and described."""

from __future__ import annotations

import pytest
import torch

from conformance.inventory import call_of, exists
from conformance.models import file
from conformance.models.model import ModelCall, Recording
from conformance.torch_versions import schema_of
from conformance.vocabulary import DTYPES
from tools.models import readme

RECORDINGS = file.load_all()
of_its_torch = pytest.mark.skipif(
    {torch.__version__.partition("+")[0]} != {r.facts["versions"]["torch"] for r in RECORDINGS},
    reason="other versions of torch lack some overloads",
)
every_model = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda r: r.name)


def test_each_architecture_is_there() -> None:
    assert file.names() == ("bert", "llama", "qwen2", "resnet", "unet", "vit", "whisper")


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in file.DATA.iterdir()) < 300_000


@every_model
def test_each_program_makes_calls_and_training_makes_more(recording: Recording) -> None:
    inference, training = (sum(c.counts.get(p, 0) for c in recording.calls) for p in ("inference", "training"))
    assert 100 < inference < training
    assert all(call.count > 0 for call in recording.calls)


@every_model
def test_no_call_was_lost(recording: Recording) -> None:
    assert recording.facts["lost"] == {}


@of_its_torch
@every_model
def test_the_arguments_of_each_call_are_those_of_its_schema(recording: Recording) -> None:
    for call in recording.calls:
        formals = {a.name: a for a in schema_of(call_of(call.overload)).arguments}
        assert {slot.argument for slot in call.sample.tensors} <= formals.keys(), call.overload
        assert {name for name, _ in call.sample.kwargs} <= formals.keys(), call.overload
        for slot in call.sample.tensors:
            alias = formals[slot.argument].alias_info
            assert slot.written == (alias is not None and alias.is_write), (call.overload, slot.name)


@every_model
def test_each_tensor_lies_within_its_storage(recording: Recording) -> None:
    for call in recording.calls:
        for slot, placed in zip(call.sample.tensors, call.placements, strict=True):
            last = placed.offset + sum((n - 1) * s for n, s in zip(placed.size, placed.stride, strict=True))
            assert placed.size == slot.shape
            assert slot.dtype in DTYPES
            assert slot.numel == 0 or last < placed.storage, (call.overload, slot.name)


@of_its_torch
def test_each_overload_below_others_exists() -> None:
    assert [name for name in sorted(file.overloads()) if not exists(name)] == []


def test_what_runs_in_place_of_a_composite_is_known() -> None:
    assert "convolution_overrideable" in file.below()["_convolution"]
    assert "add.out" in file.below()["add.Tensor"]
    assert "_softmax.out" in file.below()["_softmax"]


def test_strided_and_contiguous_calls_and_several_dtypes_are_among_them() -> None:
    calls: list[ModelCall] = [call for recording in RECORDINGS for call in recording.calls]
    assert {call.is_contiguous for call in calls} == {True, False}
    assert {"float32", "bfloat16", "int64"} <= {dtype for call in calls for dtype in call.dtypes}


def test_the_readme_says_how_each_was_made() -> None:
    assert (file.DATA / "README.md").read_text(encoding="utf-8") == readme.text(RECORDINGS)
