"""Ops refuse tensors of other devices, including CPU, where torch's own devices refuse them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

A, B, ONES = torch.ones(3, 4), torch.ones(4, 5), torch.ones
CLASSES = torch.tensor([0, 1, 2])
#: Calls with one tensor on a different device.
Calls = dict[str, Callable[[torch.device, torch.device], object]]
CALLS: Calls = {
    "mm": lambda device, other: torch.mm(A.to(device), B.to(other)),
    "mm_first": lambda device, other: torch.mm(A.to(other), B.to(device)),
    "addmm": lambda device, other: torch.addmm(ONES(5).to(other), A.to(device), B.to(device)),
    "bmm": lambda device, other: torch.bmm(A[None].to(device), B[None].to(other)),
    "baddbmm": lambda device, other: torch.baddbmm(ONES(1, 3, 5).to(device), A[None].to(device), B[None].to(other)),
    "addmv": lambda device, other: torch.addmv(ONES(3).to(device), A.to(device), ONES(4).to(other)),
    "addbmm_out": lambda device, other: torch.addbmm(
        ONES(3, 5).to(device), A[None].to(device), B[None].to(device), out=torch.empty(0, device=other)
    ),
    "linear": lambda device, other: F.linear(A.to(device), ONES(5, 4).to(other)),
    "nll_loss": lambda device, other: F.nll_loss(A.to(device), CLASSES.to(other)),
    "nll_loss_weight": lambda device, other: F.nll_loss(A.to(device), CLASSES.to(device), ONES(4).to(other)),
    "layer_norm": lambda device, other: F.layer_norm(A.to(device), (4,), ONES(4).to(other)),
    "softmax_backward": lambda device, other: torch.ops.aten._softmax_backward_data(
        A.to(device), A.to(other), 1, torch.float32
    ),
    "kthvalue_out": lambda device, other: torch.kthvalue(
        A.to(device), 1, out=(torch.empty(0, device=other), torch.empty(0, dtype=torch.int64, device=other))
    ),
    "nansum_out": lambda device, other: torch.nansum(A.to(device), 1, out=torch.empty(0, device=other)),
    "nan_to_num_out": lambda device, other: torch.nan_to_num(
        CLASSES.to(device), out=torch.empty(3, dtype=torch.int64, device=other)
    ),
    "var_out": lambda device, other: torch.var(A.to(device), 1, out=torch.empty(0, device=other)),
}


@pytest.mark.parametrize("other", ["cpu", "npu:1"])
@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_another_device_are_refused(name: str, other: str) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        CALLS[name](torch.device("npu:0"), torch.device(other))
