"""Memory that processes share: the device has none, and says so."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler

import pytest
import refnpu.testing
import torch
from builds import needs_faults

TODO = r"the npu has no memory that processes share\. .*x\.cpu\(\)"


def test_share_memory_of_a_tensor_of_the_device_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=rf"share_memory_\(\): {TODO}"):
        torch.ones(2, device="npu").share_memory_()


def test_share_memory_of_a_module_on_the_device_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=TODO):
        torch.nn.Linear(2, 2).npu().share_memory()


def test_sending_a_tensor_of_the_device_to_a_process_is_refused() -> None:
    x = torch.ones(2, device="npu")
    for sent in (x, torch.nn.Parameter(x), [x[1:]], x.untyped_storage()):
        with pytest.raises(NotImplementedError, match=TODO):
            ForkingPickler.dumps(sent)


def test_tensors_of_the_cpu_are_shared_and_sent_as_without_refnpu() -> None:
    x = torch.ones(3)
    assert not x.is_shared()
    assert x.share_memory_().is_shared()
    y = ForkingPickler.loads(ForkingPickler.dumps(x))
    y.add_(1)
    assert x.tolist() == [2.0, 2.0, 2.0]
    assert isinstance(ForkingPickler.loads(ForkingPickler.dumps(torch.nn.Parameter(x))), torch.nn.Parameter)


@needs_faults
@pytest.mark.parametrize(("fault", "expected"), [("shared_memory_is_a_copy", 2.0), ("sent_tensor_arrives_empty", 0.0)])
def test_a_fault_shares_nothing_and_says_nothing(fault: str, expected: float) -> None:
    refnpu.testing.set_fault(fault)
    x = torch.full((2,), 2.0, device="npu").share_memory_()
    y = ForkingPickler.loads(ForkingPickler.dumps(x)).add_(1)
    assert (x.tolist(), y.tolist()) == ([2.0, 2.0], [expected + 1, expected + 1])


@needs_faults
def test_a_question_that_python_asks_is_noted() -> None:
    x = torch.ones(2, device="npu")
    with refnpu.testing.questions() as asked, pytest.raises(NotImplementedError):
        x.share_memory_()
    assert ("shared_memory_is_a_copy", "") in asked
