"""Threads that are the first to use the device in their process, all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from conformance.scenarios.asking import accelerator, module_of, named
from conformance.scenarios.at_once import THREADS, run_threads
from conformance.scenarios.model import NotOffered, Results, first_line, reloaded, scenario
from conformance.scenarios.new_processes import results_of


def _event(kind: str) -> bool:
    event = torch.Event(kind)
    event.record()
    event.synchronize()
    return bool(event.query())


def _loaded(kind: str) -> bool:
    return bool(reloaded(torch.arange(3.0), map_location=kind).cpu().tolist() == [0, 1, 2])


def _gradient(kind: str) -> bool:
    x = torch.ones(2, device=kind, requires_grad=True)
    (x * 2).sum().backward()
    return x.grad is not None and x.grad.tolist() == [2, 2]


def _seeded(kind: str) -> bool:
    torch.manual_seed(3)
    return bool(torch.rand(2, device=kind).cpu().shape == (2,))


def _drawn(kind: str) -> bool:
    return bool(torch.rand(3, device=kind, generator=torch.Generator(kind)).cpu().shape == (3,))


def _state(kind: str) -> bool:
    state = named(module_of(kind), "get_rng_state")()
    return isinstance(state, torch.Tensor) and state.numel() > 0


def _memory(kind: str) -> bool:
    torch.accelerator.synchronize()
    return isinstance(named(module_of(kind), "memory_allocated")(), int)


#: First uses of the device, called with the name of a kind of device. Each returns whether its result is right.
FIRST: dict[str, Callable[[str], bool]] = {
    "tensor": lambda kind: bool(torch.ones(3, device=kind).add(1).cpu().eq(2).all()),
    "stream": lambda kind: torch.Stream(kind).device.type == kind,
    "gradient": _gradient,
    "copy": lambda kind: torch.arange(9.0).to(kind).cpu().tolist() == list(range(9)),
    "event": _event,
    "generator": _drawn,
    "pinned": lambda _: torch.ones(3).pin_memory().is_pinned(),
    "seed": _seeded,
    "current": lambda _: torch.accelerator.current_device_index() >= 0,
    "synchronize": lambda _: torch.accelerator.synchronize() is None,
    "memory": _memory,
    "state": _state,
    "load": _loaded,
    "storage": lambda kind: torch.UntypedStorage(64, device=kind).nbytes() == 64,
    "counts": lambda kind: torch.bincount(torch.tensor([2, 0, 2], device=kind)).cpu().tolist() == [1, 0, 2],
}
#: The first uses by the threads of a process: all the same, or all different.
STARTS: dict[str, Sequence[str]] = {
    **{f"all_{name}": [name] * THREADS for name in ("tensor", "stream")},
    **{f"mixed_{i}": list(FIRST)[i::3] for i in range(3)},
}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def first_uses_at_once(device: str) -> Results:
    """Threads that use the device of a new process for the first time, all at once, get what one thread gets."""
    if device == "cpu":
        return {f"{of}.{i}": torch.tensor(True) for of, names in STARTS.items() for i in range(len(names))}
    accelerator(device)
    kind = torch.device(device).type
    lacking = {name: why for name in FIRST if (why := _refused(name, kind))}
    results: Results = {}
    for of, names in STARTS.items():
        tried = [i for i, name in enumerate(names) if name not in lacking]
        (found,) = results_of(device, work_at_once, [(kind, [names[i] for i in tried])]) if tried else [{}]
        right = dict(zip(tried, found.values(), strict=True))
        results |= {f"{of}.{i}": right[i] if i in right else lacking[name] for i, name in enumerate(names)}
    return results


def _refused(name: str, kind: str) -> NotOffered | None:
    """Return why a first use fails in one thread of this process, which has used the device; None if it is right."""
    try:
        return None if FIRST[name](kind) else NotOffered(f"{name} in one thread")
    except Exception as e:  # noqa: BLE001  # a backend may raise anything; other programs find it
        return NotOffered(f"{name} in one thread: {first_line(e)}")


def work_at_once(kind: str, names: Sequence[str]) -> Results:
    """Start threads in this new process that begin at once. Return whether each is right, by its index.

    Raises RuntimeError if the threads do not end, and the error of a thread that raises.
    """
    right = [False] * len(names)

    def work(i: int, begin: Callable[[], object]) -> None:
        begin()
        right[i] = FIRST[names[i]](kind)

    run_threads(len(names), work)
    return {str(i): torch.tensor(one) for i, one in enumerate(right)}
