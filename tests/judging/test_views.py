"""Storages as bytes, and tensors as views over them."""

from __future__ import annotations

import pytest
import torch

from conformance.judging.views import POISON_BOOL, Unreadable, device_bytes, host_copy, poison, torch_dtype


def test_poison_of_bools_is_legal_and_irregular() -> None:
    made = poison(40, "bool").tolist()
    assert set(made) == {0, 1}
    assert made[: len(POISON_BOOL)] == list(POISON_BOOL)


def test_the_host_copy_of_a_cpu_tensor_is_the_tensor_itself() -> None:
    view = torch.arange(12.0).view(3, 4)[1:, 1::2]
    assert host_copy(view) is view, "on the CPU there is nothing to copy"


def test_a_dtype_that_this_torch_lacks_is_a_clear_error() -> None:
    with pytest.raises(LookupError, match="has no dtype 'float3'"):
        torch_dtype("float3")


class Elsewhere:
    """A tensor of a device. Reading it raises if it has no values."""

    is_cpu = False

    def __init__(self, values: torch.Tensor | None) -> None:
        self.values = values

    def cpu(self) -> torch.Tensor:
        if self.values is None:
            raise RuntimeError("buffer is deleted")
        return self.values


def test_an_error_while_memory_is_read_is_kept() -> None:
    with pytest.raises(Unreadable) as raised:
        device_bytes(Elsewhere(None), torch.zeros(4, dtype=torch.uint8))
    assert str(raised.value.__cause__) == "buffer is deleted"


@pytest.mark.parametrize(("now", "read"), [([7], [7, 1, 1]), ([7, 8, 9], [7, 8, 9]), ([7, 8, 9, 6], [7, 8, 9])])
def test_a_storage_has_as_many_bytes_after_a_call_as_before(now: list[int], read: list[int]) -> None:
    base, before = Elsewhere(torch.tensor(now, dtype=torch.uint8)), torch.ones(3, dtype=torch.uint8)
    assert device_bytes(base, before).tolist() == read
