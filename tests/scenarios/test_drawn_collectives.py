"""The results of drawn collective calls: a call must not change the tensors that it reads."""

from __future__ import annotations

import torch

from conformance.scenarios.drawn_collectives import Call, Started, _result
from conformance.scenarios.model import Broken, NotOffered

CALL = Call("scatter", torch.float32, (2,), "dense", "SUM", 0, "", "wait", 0)


def test_a_call_that_changes_what_it_reads_is_broken() -> None:
    written, given = torch.ones(2), torch.arange(2)
    kept = _result(CALL, Started([written], [(given.clone(), given)], None), "npu:0")
    assert isinstance(kept, torch.Tensor)
    assert torch.equal(kept, written)
    broken = _result(CALL, Started([written], [(given + 1, given)], None), "npu:0")
    assert isinstance(broken, Broken)
    assert broken.is_wrong
    assert broken.lines[0] == "scatter(float32 [2], dense, root 0, async, wait)"


def test_a_call_that_failed_stays_what_it_was() -> None:
    lacking = NotOffered("no scatter")
    assert _result(CALL, lacking, "npu:0") is lacking
