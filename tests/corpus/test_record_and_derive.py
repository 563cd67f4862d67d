"""Recording of ATen calls, and derivation of samples of siblings."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch

from conformance.corpus.calls import plain_call
from conformance.corpus.derive import Deriver, stem
from conformance.corpus.model import DtypeArg, Sample
from conformance.corpus.outs import vary_outs
from conformance.corpus.record import Recorder, Recording
from conformance.corpus.validate import validate
from conformance.inventory import Overload, call_of, inventory

OVERLOADS = {o.name: o for o in inventory("CPU")}


def most(_: Overload) -> Mapping[str, int]:
    return {"float32": 2, "int64": 1}


def recorded(overload: str, base: str, recording: Recording) -> Sample:
    return recording.candidates[overload, base][0]


def test_a_recorded_call_holds_structure_and_values() -> None:
    recording = Recording()
    x, mask = torch.rand(3, 4), torch.tensor([True, False, True, False])
    with Recorder(recording, "float32", "opinfo.test"):
        x.clone().masked_fill_(mask, 2.5)
    sample = recorded("masked_fill_.Scalar", "float32", recording)
    assert [(t.name, t.shape, t.dtype, t.written) for t in sample.tensors] == [
        ("self", (3, 4), None, True),
        ("mask", (4,), "bool", False),
    ]
    args, _ = plain_call(sample, "float64", recording.pools)
    assert torch.equal(args[0], x.double())
    assert torch.equal(args[1], mask)
    assert args[2] == 2.5


def test_values_are_those_before_an_in_place_call() -> None:
    recording = Recording()
    x = torch.ones(3)
    with Recorder(recording, "float32", "opinfo.test"):
        x.mul_(2)
    sample = recorded("mul_.Tensor", "float32", recording)
    assert plain_call(sample, "float32", recording.pools)[0][0].tolist() == [1, 1, 1]


def test_an_index_keeps_its_dtype_when_the_base_has_the_same() -> None:
    recording = Recording()
    for base in ("float32", "int64"):
        with Recorder(recording, base, "opinfo.test"):
            torch.ones(3, dtype=getattr(torch, base)).gather(0, torch.tensor([1, 2]))
    assert [t.dtype for t in recorded("gather", "int64", recording).tensors] == [None, "int64"]


def test_a_call_that_raises_is_kept_as_such() -> None:
    recording = Recording()
    with Recorder(recording, "float32", "opinfo.test"), pytest.raises(RuntimeError):
        torch.ones(2, 3).mm(torch.ones(2, 3))
    assert recorded("mm", "float32", recording).raises


def test_a_dtype_that_is_the_base_s_follows_the_cell() -> None:
    recording = Recording()
    with Recorder(recording, "float32", "opinfo.test"):
        torch.zeros(2, dtype=torch.float32)
        torch.zeros(2, dtype=torch.float32).to(torch.float64)
    assert dict(recorded("_to_copy", "float32", recording).kwargs)["dtype"] == DtypeArg("float64")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("masked_fill_.Scalar", "masked_fill"), ("_foreach_neg_", "neg"), ("slice_copy.Tensor", "slice"), ("neg", "neg")],
)
def test_siblings_share_a_stem(name: str, expected: str) -> None:
    assert stem(name) == expected


@pytest.fixture(scope="module")
def derived() -> tuple[Recording, dict[str, list[Sample]]]:
    recording = Recording()
    with Recorder(recording, "float32", "opinfo.test"):
        torch.rand(3, 4).sum(1)
        torch.rand(3, 4) > 0.5  # noqa: B015 - run to be recorded
        torch.rand(3).neg()
    kept = {k[0]: validate(rows, recording.pools)[0] for k, rows in recording.candidates.items() if rows}
    wanted = {n: OVERLOADS[n] for n in (*kept, "neg_", "neg.out", "gt.Scalar_out", "sum.IntList_out", "_foreach_neg")}
    for sample in Deriver(wanted, recording.pools, most).derive(kept):
        kept.setdefault(sample.overload, []).append(sample)
    return recording, kept


@pytest.mark.parametrize("overload", ["neg_", "neg.out", "gt.Scalar_out", "sum.IntList_out", "_foreach_neg"])
def test_a_sibling_s_derived_sample_runs(overload: str, derived: tuple[Recording, dict[str, list[Sample]]]) -> None:
    recording, kept = derived
    args, kwargs = plain_call(kept[overload][0], "float32", recording.pools)
    call_of(overload)(*args, **kwargs)


def test_a_base_that_was_not_recorded_is_derived_beside_one_that_was() -> None:
    recording = Recording()
    with Recorder(recording, "float32", "opinfo.test"):
        torch.rand(3).relu()
        torch.rand(3).relu_()
    with Recorder(recording, "int64", "opinfo.test"):
        torch.arange(3).relu()
    kept: dict[str, list[Sample]] = {name: [] for name, _ in recording.candidates}
    for (name, _), rows in recording.candidates.items():
        kept[name] += validate(rows, recording.pools)[0]
    deriver = Deriver({n: OVERLOADS[n] for n in ("relu", "relu_")}, recording.pools, most)
    derived = deriver.derive(kept)
    assert [(s.overload, s.base, s.tensors[0].shape) for s in derived] == [("relu_", "int64", (3,))]
    assert deriver.derive(kept) == []  # a second call finds no new samples


def test_an_output_has_the_dtype_the_call_gives(derived: tuple[Recording, dict[str, list[Sample]]]) -> None:
    _, kept = derived
    out = kept["gt.Scalar_out"][0].tensors[-1]
    assert (out.name, out.shape, out.dtype, out.pool) == ("out", (3, 4), "bool", "")
    assert kept["sum.IntList_out"][0].tensors[-1].dtype is None


def test_outputs_are_varied(derived: tuple[Recording, dict[str, list[Sample]]]) -> None:
    recording, kept = derived
    varied = list(vary_outs({"neg.out": kept["neg.out"]}, frozenset(["neg.out"])))
    shapes = {s.name.split(".")[-2]: (s.tensors[-1].shape, s.tensors[-1].dtype, s.raises) for s in varied}
    assert shapes == {
        "empty_out": ((0,), None, False),
        "larger_out": ((2, 3), None, False),
        "wider_out": ((3,), "float64", False),
        "unsafe_out": ((3,), "int64", True),
    }
    # neg's kernel requires the dtype of its result, so the sample with a wider output is not kept.
    kept_too = [s.name.split(".")[-2] for s in validate(varied, recording.pools)[0]]
    assert kept_too == ["empty_out", "larger_out", "unsafe_out"]
