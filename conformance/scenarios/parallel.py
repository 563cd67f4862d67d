"""Models that two processes train together, and tensors that are distributed over both."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from conformance.scenarios.groups import PROCESSES, in_a_group
from conformance.scenarios.model import NotOffered, Results, first_line, scenario


@scenario(slow=True, area="distributed")
def data_parallel_step(device: str) -> Results:
    """A step of ``DistributedDataParallel`` in two processes is the step with the whole batch in one."""
    return in_a_group(device, _data_parallel)


@scenario(slow=True, area="distributed")
def sharded_step(device: str) -> Results:
    """A step of a model under ``fully_shard`` in two processes is the step with the whole batch in one."""
    return in_a_group(device, _sharded)


@scenario(slow=True, area="distributed")
def distributed_tensors(device: str) -> Results:
    """A ``DTensor`` over two processes computes and is redistributed as the whole tensor would be."""
    return in_a_group(device, _distributed)


def _model(device: str) -> nn.Module:
    """Return a model, which is the same in each process."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).to(device)


def _batch(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(8, 8, generator=generator)
    return draws[:, :6].to(device), draws[:, 6:].to(device)


def _step(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Take two steps of SGD with momentum. Return the last loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.detach()


def _part(x: torch.Tensor) -> torch.Tensor:
    """Return this process's part of a batch."""
    from torch import distributed as dist

    return x.chunk(PROCESSES)[dist.get_rank()]


def _against_one_process(device: str, found: dict[str, torch.Tensor]) -> Results:
    """Return parameters, and whether each equals that of the model that one process trains with the whole batch.

    Raises NotOffered if one differs on CPU: ``fully_shard`` of torch 2.8 does not average gradients there.
    """
    alone = _model(device)
    _step(alone, *_batch(device))
    wanted = {name: x.detach().cpu() for name, x in alone.named_parameters()}
    same = [name in found and torch.allclose(found[name], x, 1e-4, 1e-5) for name, x in wanted.items()]
    if device == "cpu" and not all(same):
        raise NotOffered(f"torch {torch.__version__} takes another step in two processes on CPU")
    return {**found, "the same as in one process": torch.tensor(same)}


def _data_parallel(device: str) -> Results:
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(_model(device))
    inputs, targets = (_part(x) for x in _batch(device))
    loss = _step(model, inputs, targets)
    found = {name.removeprefix("module."): x.detach().cpu() for name, x in model.named_parameters()}
    return {"loss": loss, **_against_one_process(device, found)}


def _sharded(device: str) -> Results:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError as e:
        raise NotOffered(first_line(e)) from e
    model, mesh = _model(device), _mesh(device)
    for module in (model.get_submodule("0"), model):
        fully_shard(module, mesh=mesh)
    inputs, targets = (_part(x) for x in _batch(device))
    loss = _step(model, inputs, targets)
    sharded: Any = model.named_parameters()
    found = {name: x.full_tensor().detach().cpu() for name, x in sharded}
    return {"loss": loss, **_against_one_process(device, found)}


def _mesh(device: str) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(torch.device(device).type, (PROCESSES,))


def _distributed(device: str) -> Results:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = _mesh(device)
    torch.manual_seed(0)
    left, right = torch.randn(4, 6).to(device), torch.randn(6, 4).to(device)
    rows = distribute_tensor(left, mesh, [Shard(0)])
    columns = distribute_tensor(left, mesh, [Shard(1)])
    product = columns @ distribute_tensor(right, mesh, [Shard(0)])  # a sum over both processes
    return {
        "part": rows.to_local().detach(),
        "whole": rows.full_tensor(),
        "replicated": columns.redistribute(mesh, [Replicate()]).to_local(),
        "other dimension": rows.redistribute(mesh, [Shard(1)]).to_local(),
        "product": product.full_tensor(),
        "product, in parts": product.redistribute(mesh, [Shard(0)]).to_local(),
        "mean": rows.abs().mean().full_tensor(),
        "sum of columns": columns.sum(1).full_tensor(),
    }
