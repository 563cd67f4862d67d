"""A live call that is captured, stored, replayed, shrunk and written as a script: the same call each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.bare_device import BareDevice
from conformance.calls import file, judging
from conformance.calls.capture import Capture, touches
from conformance.calls.model import Call, RecordedTwins
from conformance.calls.sequence import lone
from conformance.corpus.model import NotStorable
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import CPU
from conformance.triage import script
from conformance.triage.shrink import candidates, shrink

OPS = torch.ops.aten
BACKEND = backends.Capabilities(BareDevice("hand", "cpu:0"), "torch")


def taken(func: Any, *args: Any, **kwargs: Any) -> Call:
    return Capture(CPU).take(func, args, kwargs, "call.0")[0]


def strided() -> torch.Tensor:
    """Return a tensor of shape (3, 2, 4) with permuted strides, an offset, and unused elements behind it."""
    return torch.arange(40.0).as_strided((3, 2, 4), (1, 12, 3), 5)


def test_the_arguments_come_back_as_they_lay() -> None:
    x = strided()
    side = RecordedTwins(taken(OPS.clone.default, x).storages).side(taken(OPS.clone.default, x).case, CPU)
    (t,) = side.args
    assert (t.shape, t.stride(), t.storage_offset()) == (x.shape, x.stride(), x.storage_offset())
    assert torch.equal(t, x)
    assert t.untyped_storage().nbytes() == x.untyped_storage().nbytes()


def test_arguments_that_share_a_storage_share_it_in_a_replay() -> None:
    x = torch.arange(6.0)
    call = taken(OPS.add.Tensor, x[:4], x[2:])
    a, b = RecordedTwins(call.storages).side(call.case, CPU).args
    a.fill_(7)
    assert b.tolist() == [7, 7, 4, 5]


@pytest.mark.parametrize("bad", [torch.ones(2).to_sparse(), torch.ones(2, device="meta")])
def test_an_argument_that_cannot_be_stored_is_reported(bad: torch.Tensor) -> None:
    with pytest.raises(NotStorable, match="self"):
        taken(OPS.neg.default, bad)


def test_a_file_holds_what_was_put_in(tmp_path: Path) -> None:
    calls = [
        taken(OPS.clone.default, strided(), memory_format=torch.contiguous_format),
        taken(OPS.mul.Tensor, strided(), float("-inf")),
    ]
    file.save(tmp_path / "calls", calls)
    found = file.load(tmp_path / "calls")
    assert [c.case for c in found] == [c.case for c in calls]
    assert all(torch.equal(a.storages[k], b.storages[k]) for a, b in zip(found, calls, strict=True) for k in b.storages)


def test_a_large_storage_is_kept_as_a_seed(tmp_path: Path) -> None:
    file.save(tmp_path / "calls", [taken(OPS.neg.default, torch.ones(5000))], largest=1000)
    assert (tmp_path / "calls").stat().st_size < 2000
    (once,), (again,) = file.load(tmp_path / "calls"), file.load(tmp_path / "calls")
    assert once.storages["s0"].numel() == 20_000
    assert torch.equal(once.storages["s0"], again.storages["s0"])


def test_a_damaged_file_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "calls").write_bytes(b"nonsense")
    with pytest.raises(file.CallsError, match="not a file of recorded calls"):
        file.load(tmp_path / "calls")


def test_a_call_is_judged_by_what_it_left_behind() -> None:
    call, side = Capture(CPU).take(OPS.neg.default, (strided(),), {}, "call.0")
    right = CallOutcome(side, [("result", OPS.neg.default(strided()))])
    assert judging.made(call, BACKEND, right).mismatches == []
    wrong = CallOutcome(side, [("result", OPS.neg.default(strided()) + 1)])
    assert [m.check.value for m in judging.made(call, BACKEND, wrong).mismatches] == ["value"]
    side.arguments[0].base[0] = 99  # a byte that the view does not reach
    assert [m.check.value for m in judging.made(call, BACKEND, right).mismatches] == ["untouched"]


def test_a_recorded_call_that_raises_is_judged_by_the_bytes_it_changed_too() -> None:
    call, side = Capture(CPU).take(OPS.neg.default, (strided(),), {}, "call.0")
    raised = CallOutcome(side, error=RuntimeError("out of memory"))
    assert [m.check.value for m in judging.made(call, BACKEND, raised).mismatches] == ["error_parity"]
    side.arguments[0].base[0] = 99
    assert [m.check.value for m in judging.made(call, BACKEND, raised).mismatches] == ["error_parity", "untouched"]


def test_a_recorded_call_is_made_again_by_the_suites_own_judge() -> None:
    assert judging.again(taken(OPS.masked_fill_.Scalar, strided(), strided() > 9, 0.0), BACKEND).mismatches == []


def test_shrinking_keeps_what_the_failure_needs() -> None:
    def fails(call: Call) -> bool:
        p = call.case.placements[0]
        return p.size[0] > 1 and p.stride[0] < p.stride[-1]  # needs two dimensions out of order

    found = shrink(taken(OPS.clone.default, strided()), fails)
    assert all(fails(call) for call in found)
    assert [call.elements for call in found] == sorted((call.elements for call in found), reverse=True)
    small = found[-1]
    assert small.case.placements[0].size in ((2, 1, 1), (2, 1, 2))
    assert small.case.placements[0].offset == 0
    assert small.elements < 40


def test_shrinking_ends_where_nothing_is_left_to_make_simpler() -> None:
    found = shrink(taken(OPS.clone.default, strided()), lambda _: True, tries=1000)
    assert list(candidates(found[-1])) == []
    assert len(found) < 20


def test_each_candidate_is_a_call_that_the_cpu_takes() -> None:
    for candidate in candidates(taken(OPS.clone.default, strided())):
        assert judging.again(candidate, BACKEND).mismatches == []


def test_the_script_makes_the_same_call() -> None:
    text = script.script([lone(taken(OPS.clone.default, strided()))], BACKEND, "clone")
    assert script.own_lines(text) <= 10
    assert ".as_strided((3, 2, 4), (1, 12, 3), 5)" in text
    exec(compile(text, "script", "exec"), {})  # raises if the two sides differ


def test_only_calls_that_touch_the_device_count() -> None:
    meta = torch.device("meta")
    assert touches(meta, ([torch.ones(1), torch.ones(1, device="meta")],))
    assert touches(meta, {"device": torch.device("meta")})
    assert not touches(meta, (torch.ones(1), 3, {"x": None}))
