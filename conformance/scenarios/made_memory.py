"""Ways to get memory of a device: the device that each uses, and the device on which the memory counts.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch

from conformance.scenarios.asking import accelerator, another, held, module_of, named, on_device
from conformance.scenarios.device_names import SIZE, taken
from conformance.scenarios.model import NotOffered, Results, reloaded, scenario

Way = Callable[[torch.Tensor], "torch.Tensor | torch.UntypedStorage"]


def _moved_module(x: torch.Tensor) -> torch.Tensor:
    module = torch.nn.Linear(512, 512, bias=False)
    return module.to(x.device).weight


#: Ways to get new memory of a device for SIZE bytes, from a tensor of as many bytes there. Gradients are left out: a
#: thread of torch frees their tensors only after ``backward`` has returned.
WAYS: dict[str, Way] = {
    "empty": lambda x: torch.empty(SIZE, dtype=x.dtype, device=x.device),
    "empty_strided": lambda x: torch.empty_strided((1 << 10, 1 << 10), (1, 1 << 10), dtype=x.dtype, device=x.device),
    "full": lambda x: torch.full((SIZE // 4,), 2.0, device=x.device),
    "new_zeros": lambda x: x.new_zeros(SIZE),
    "empty_like": torch.empty_like,
    "clone": torch.clone,
    "computed": lambda x: x + 1,
    "compared": lambda x: x > 1,
    "turned": lambda x: x.view(4, -1).t().contiguous(),
    "joined": lambda x: torch.cat((x[: SIZE // 2], x[SIZE // 2 :])),
    "chosen": lambda x: x[torch.arange(SIZE - 1, -1, -1, device=x.device)],
    "summed_up": lambda x: x.cumsum(0, dtype=torch.uint8),
    "filled_triangle": lambda x: torch.tril_indices(363, 363, dtype=torch.int64, device=x.device),
    "drawn": lambda x: torch.rand(SIZE // 4, device=x.device),
    "from_host": lambda x: torch.ones(SIZE, dtype=torch.uint8).to(x.device),
    "from_pinned": lambda x: taken(torch.ones(SIZE, dtype=torch.uint8).pin_memory).to(x.device),
    "from_another_device": lambda x: torch.ones(SIZE, dtype=torch.uint8, device=another(str(x.device))).to(x.device),
    "of_numbers": lambda x: torch.tensor([1.0] * (SIZE // 4), device=x.device),
    "into_nothing": lambda x: torch.add(x, 1, out=torch.empty(0, dtype=x.dtype, device=x.device)),
    "resized": lambda x: x[:1].clone().resize_(SIZE),
    "resized_storage": lambda x: x[:1].clone().untyped_storage().resize_(SIZE),
    "storage": lambda x: torch.UntypedStorage(SIZE, device=x.device),
    "copied_storage": lambda x: x.untyped_storage().clone(),
    "set_": lambda x: x[:1].clone().set_(torch.UntypedStorage(SIZE, device=x.device)),
    "data": lambda x: _with_data(x[:1].clone(), x.clone()),
    "deeply_copied": copy.deepcopy,
    "saved_and_loaded": reloaded,
    "moved_module": _moved_module,
}


def _with_data(x: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    x.data = data
    return x


@scenario(exact=True, area="memory", accelerators=True)
def memory_of_each_way(device: str) -> Results:
    """Memory lies on the device that is named, and counts there alone until it is freed, whichever is current."""
    index = torch.device(device).index or 0

    def counts(way: Way, current: int) -> bool:
        accelerator(device)
        count, allocated = torch.accelerator.device_count(), named(module_of(device), "memory_allocated")
        if current >= count:
            raise NotOffered("a second device")

        def of_each() -> list[int]:
            return [taken(allocated, each) for each in range(count)]

        with on_device(current):
            unused = of_each()[index]
            x = torch.zeros(SIZE, dtype=torch.uint8, device=device)
            counted = of_each()[index] - unused  # a device may count whole pages
            way(x)  # a first call may keep a workspace
            before = of_each()
            made = way(x)
            there, during = made.device, of_each()
            del made
            after = of_each()
        grown = [b - a for a, b in zip(before, during)]
        return there == x.device and SIZE <= grown.pop(index) < 2 * counted and not any(grown) and after == before

    return held(device, {
        f"{name}{'' if current == index else '.elsewhere'}": partial(counts, way, current)
        for name, way in WAYS.items()
        for current in (index, 1 - index)
    })  # fmt: skip


#: Copies of a tensor of 2 x SIZE bytes from one device to another.
COPIES: dict[str, Callable[[torch.Tensor, torch.device], torch.Tensor]] = {
    "dense": lambda x, to: x.to(to),
    "strided": lambda x, to: x[::2].to(to),
    "transposed": lambda x, to: x.view(2, -1).t().to(to),
    "converted": lambda x, to: x.to(to, torch.float32),
    "expanded": lambda x, to: x[:1].expand(SIZE).to(to),
    "into_strided": lambda x, to: torch.empty(4 * SIZE, dtype=x.dtype, device=to)[::2].copy_(x),
}


@scenario(exact=True, area="memory", accelerators=True)
def memory_of_other_devices(device: str) -> Results:
    """What is made on one device, or is copied between two, takes no memory of another one, not even for a moment."""

    def spares(devices: int, work: Callable[[list[torch.device]], object]) -> bool:
        accelerator(device)
        count, index = torch.accelerator.device_count(), torch.device(device).index or 0
        others = [torch.device(f"{torch.device(device).type}:{i}") for i in range(count) if i != index]
        if len(others) < devices:
            raise NotOffered(f"{devices + 1} devices")
        reset, *asked = (
            named(module_of(device), name)
            for name in ("reset_peak_memory_stats", "memory_allocated", "max_memory_allocated")
        )
        work(others)  # a first call may keep a workspace
        taken(reset, index)
        before = [taken(ask, index) for ask in asked]
        work(others)
        for other in others[:devices]:
            torch.accelerator.synchronize(other)
        return before == [taken(ask, index) for ask in asked]

    def make(name: str, others: list[torch.device]) -> object:
        return WAYS[name](torch.zeros(SIZE, dtype=torch.uint8, device=others[0]))

    def copy_between(name: str, others: list[torch.device]) -> object:
        return COPIES[name](torch.zeros(2 * SIZE, dtype=torch.uint8, device=others[0]), others[1])

    made = {name: partial(spares, 1, partial(make, name)) for name in WAYS if name != "from_another_device"}
    copied = {f"{name}_copy": partial(spares, 2, partial(copy_between, name)) for name in COPIES}
    return held(device, {**made, **copied})
