"""The faults that make calls slow: awake, each does what its description says, and results stay right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from builds import needs_faults
from refnpu import testing
from refnpu.conformance import adapter

pytestmark = needs_faults

Op = Callable[[torch.Tensor], torch.Tensor]
SLOWED: dict[str, tuple[str, Op]] = {
    "softmax_computes_rows_twice": ("_softmax", lambda x: x.softmax(-1)),
    "sigmoid_waits_before_launch": ("sigmoid", torch.sigmoid),
    "hardswish_by_fallback": ("hardswish", torch.nn.functional.hardswish),
}


@pytest.mark.parametrize("fault", SLOWED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_slow_op_gives_the_bits_that_it_gives_otherwise(fault: str, dtype: torch.dtype) -> None:
    _, op = SLOWED[fault]
    x = torch.linspace(-4, 4, 60).to(dtype).view(5, 12).to("npu").t()
    right = op(x)
    with testing.fault(fault):
        slow = op(x)
    assert torch.equal(slow.cpu(), right.cpu())
    assert slow.stride() == right.stride()


@pytest.mark.parametrize("fault", SLOWED)
def test_no_other_op_asks_for_a_fault_of_speed(fault: str) -> None:
    operator, op = SLOWED[fault]
    x = torch.ones(2, 3, device="npu")
    with testing.questions() as asked:
        op(x)
        x.tanh().exp().log_softmax(-1).relu()
    assert {o for name, o in asked if name == fault} == {operator}


def test_hardswish_in_every_form_is_counted_as_a_fallback() -> None:
    x = torch.linspace(-4, 4, 9)
    right, on_device = torch.nn.functional.hardswish(x), x.to("npu")
    with testing.fault("hardswish_by_fallback"):
        before = adapter.route_counters()
        torch.ops.aten.hardswish.out(on_device, out=torch.empty(9, device="npu"))
        torch.ops.aten.hardswish_(on_device)
        after = adapter.route_counters()
    assert after[1] - before[1] == 2
    assert torch.equal(on_device.cpu(), right)


def test_sigmoid_returns_after_the_work_before_it_is_done() -> None:
    x = torch.ones(4, device="npu")
    with testing.late("200000"), testing.fault("sigmoid_waits_before_launch"):
        x.add_(1)
        earlier = torch.npu.Event()
        earlier.record()
        x.sigmoid()
        reached = earlier.query()
    assert reached
