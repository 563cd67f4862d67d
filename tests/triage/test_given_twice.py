"""Results in the memory of a live tensor are found, and allowed overlaps are not reported."""

from __future__ import annotations

import numpy as np
import torch

from conformance.explain import mismatch_text
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import CPU, Side
from conformance.torch_versions import storage_ref
from conformance.triage.given_twice import GivenTwice, Seen

MEMORY = np.zeros(8, dtype=np.float32)


def outcome(*leaves: torch.Tensor) -> CallOutcome:
    """Return the outcome of a call that returns ``leaves``.

    Tensors made of one array stand for tensors that an allocator gave the same block.
    """
    return CallOutcome(Side(CPU, [], (), {}), [("result", leaf) for leaf in leaves])


def said(known: GivenTwice, *leaves: torch.Tensor) -> list[str]:
    return [mismatch_text.text(m) for m in known.look("add (call 1)", outcome(*leaves))]


def test_a_result_in_the_memory_of_a_tensor_that_is_there_is_found() -> None:
    known, first = GivenTwice(CPU), torch.from_numpy(MEMORY)
    assert known.look("mul (call 0)", outcome(first)) == []
    (found,) = said(known, torch.from_numpy(MEMORY))
    assert found == "result: was given memory that the result of mul (call 0) still occupies"


def test_memory_of_a_tensor_that_is_gone_is_free() -> None:
    known, first = GivenTwice(CPU), torch.from_numpy(MEMORY)
    known.look("mul (call 0)", outcome(first))
    del first
    assert said(known, torch.from_numpy(MEMORY)) == []


def test_memory_that_a_tensor_moved_away_from_is_free() -> None:
    known, grown = GivenTwice(CPU), torch.zeros(2)
    new = torch.from_numpy(MEMORY)
    known.starts[new.data_ptr()] = Seen("result", "mul (call 0)"), storage_ref(grown)  # its address before it grew
    assert said(known, new) == []


def test_views_and_arguments_returned_lie_where_they_should() -> None:
    known, first = GivenTwice(CPU), torch.from_numpy(MEMORY)
    known.look("mul (call 0)", outcome(first))
    assert said(known, first, first[:3], first.view(torch.int32)) == []


def test_an_empty_tensor_overlaps_no_other() -> None:
    known = GivenTwice(CPU)
    assert said(known, torch.empty(0), torch.empty(0)) == []
