"""Bytes, operations and copies of calls, counted on CPU or with a backend that falls back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch

from conformance import backends
from conformance.corpus import reader
from conformance.corpus.model import Sample, TensorSlot
from conformance.perf import work
from conformance.perf.sides import Side, leaves, side
from conformance.perf.sizing import suitable


def slot(index: int, name: str, *, written: bool = False, pool: str = "float32") -> TensorSlot:
    return TensorSlot(index, name, (4, 4), None, written, pool)


def call(op: Callable[..., object], *slots: TensorSlot) -> Side:
    """Return one side of a call, with a 64-byte tensor of ones for each slot."""
    tensors = [torch.ones(4, 4) for _ in slots]
    sample = Sample("s", "x", "float32", ("float32",), slots, (), slots)
    return Side(sample, tensors, list(tensors), {}, op)


def moved(op: Callable[..., object], *slots: TensorSlot) -> tuple[int, int]:
    made = call(op, *slots)
    return work.moved(made, leaves(made()))


def test_arguments_are_read_and_a_new_result_is_written() -> None:
    assert moved(torch.add, slot(0, "self"), slot(1, "other")) == (128, 64)
    assert moved(torch.sum, slot(0, "self")) == (64, 4)


def test_an_argument_in_place_is_read_and_written() -> None:
    assert moved(torch.Tensor.neg_, slot(0, "self", written=True)) == (64, 64)


def test_an_output_is_written_alone() -> None:
    def out(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.neg(x, out=y)

    assert moved(out, slot(0, "self"), slot(1, "out", written=True, pool="")) == (64, 64)


def test_a_view_moves_nothing() -> None:
    assert moved(torch.t, slot(0, "self")) == (0, 0)


def test_operations_are_those_of_torch_s_formula() -> None:
    assert work.flops_of(call(torch.mm, slot(0, "self"), slot(1, "mat2"))) == 2 * 4**3
    assert work.flops_of(call(torch.nn.functional.linear, slot(0, "input"), slot(1, "weight"))) == 2 * 4**3
    assert work.flops_of(call(torch.neg, slot(0, "self"))) is None


def test_a_formula_that_does_not_fit_the_overload_counts_as_none() -> None:
    def convolve(x: torch.Tensor) -> torch.Tensor:
        weight, out = torch.ones(1, 1, 2, 2), torch.empty(0)
        return torch.ops.aten.thnn_conv2d.out(x.view(1, 1, 4, 4), weight, [2, 2], out=out)

    assert work.flops_of(call(convolve, slot(0, "self"))) is None


def test_operations_of_an_op_with_an_output_are_counted() -> None:
    def out(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, x, y, out=z)

    three = slot(0, "self"), slot(1, "mat2"), slot(2, "out", written=True, pool="")
    assert work.flops_of(call(out, *three)) == 2 * 4**3


def copies_of(name: str, overload: str) -> tuple[int, int | None, int]:
    """Return the bytes that a call's fallbacks copy, the fallbacks, and the elements of its first argument."""
    backend = backends.find(name)
    corpus = reader.load(generated=False)
    sample = suitable(corpus.recorded(overload), "float32")[0]
    device = side(sample, "float32", corpus, backend.device)
    device()
    copied, _, fell_back = work.copies(device, backend)
    return copied, fell_back, sample.tensors[0].numel


def in_child(name: str, overload: str) -> tuple[int, int | None, int]:
    """Return ``copies_of`` from a child process.

    A process that has used the device cannot fork children that use it, as other tests do.
    """
    pytest.importorskip("refnpu", reason="the reference NPU is not installed")
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(copies_of, name, overload).result()


@pytest.mark.parametrize(("overload", "fallbacks"), [("erfinv", 1), ("neg", 0)], ids=["falls back", "native"])
def test_the_bytes_of_a_fallback_are_those_of_its_arguments_and_results(overload: str, fallbacks: int) -> None:
    copied, fell_back, elements = in_child("refnpu", overload)
    assert (copied, fell_back) == (fallbacks * 2 * 4 * elements, fallbacks)


@pytest.mark.parametrize(("overload", "storages"), [("erfinv.out", 3), ("neg.out", 0)], ids=["falls back", "native"])
def test_without_counters_the_route_says_what_falls_back(overload: str, storages: int) -> None:
    copied, fell_back, elements = in_child("refnpu:npu", overload)
    assert (copied, fell_back) == (storages * 4 * elements, None)  # both arguments to CPU, the written one back
