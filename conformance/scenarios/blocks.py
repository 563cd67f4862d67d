"""Blocks that make a device or a stream current: nested blocks, and blocks without a device or a stream.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from itertools import product
from typing import Any

import torch

from conformance.scenarios.asking import accelerator, held, module_of, named, on_device
from conformance.scenarios.busy_streams import with_streams
from conformance.scenarios.model import NotOffered, Results, first_line, scenario

Block = AbstractContextManager[Any]


def _new(kind: str, index: int) -> torch.Stream:
    """Return a new stream of a device. Raises NotOffered if the device has no streams."""
    return with_streams(torch.Stream, f"{kind}:{index}")


def _stream(kind: str, index: int) -> Block:
    return named(module_of(kind), "stream")(_new(kind, index))  # type: ignore[return-value]


def _torch_stream(kind: str, index: int) -> Block:
    if not hasattr(torch.Stream, "__enter__"):
        raise NotOffered(f"a block with a torch.Stream in torch {torch.__version__}")
    stream: Block = _new(kind, index)
    return stream


def _device(kind: str, index: int) -> Block:
    return named(module_of(kind), "device")(index)  # type: ignore[return-value]


def _device_index(_: str, index: int) -> Block:
    return named(torch.accelerator, "device_index")(index)  # type: ignore[return-value]


BLOCKS: dict[str, Callable[[str, int], Block]] = {
    "stream": _stream, "torch_stream": _torch_stream, "device": _device, "device_index": _device_index,
}  # fmt: skip


def _current(count: int) -> tuple[int, ...]:
    """Return the current device, and the current stream of each device."""
    streams = [torch.accelerator.current_stream(index).stream_id for index in range(count)]
    return torch.accelerator.current_device_index(), *streams


@scenario(exact=True, area="devices", accelerators=True)
def nested(device: str) -> Results:
    """A block with a device or a stream leaves current what was so before it, also within another block."""

    def restored(outer: str, inner: str, second: bool) -> bool:
        accelerator(device)
        count, kind = torch.accelerator.device_count(), torch.device(device).type
        if second and count < 2:
            raise NotOffered("a second device")
        first = _current(count)
        with BLOCKS[outer](kind, 0):
            within = _current(count)
            with BLOCKS[inner](kind, int(second)):
                pass
            after = _current(count)
        return after == within and _current(count) == first

    return held(device, {
        f"{inner}{'_of_second' if second else ''}_in_{outer}": partial(restored, outer, inner, second)
        for outer, inner, second in product(BLOCKS, BLOCKS, (False, True))
    })  # fmt: skip


@scenario(exact=True, area="devices", accelerators=True)
def made_before_they_begin(device: str) -> Results:
    """A block leaves current what was so where it begins, not where it was made, also if it is used again."""

    def restored(name: str, times: int) -> bool:
        accelerator(device)
        count, kind = torch.accelerator.device_count(), torch.device(device).type
        if count < 2:
            raise NotOffered("a second device")
        with on_device(0):
            block = BLOCKS[name](kind, 0)
        with on_device(1):
            before = _current(count)
            for number in range(times):
                with ExitStack() as within:
                    try:
                        within.enter_context(block)
                    except (RuntimeError, AttributeError) as e:
                        if number:
                            raise NotOffered(f"a block that is used again: {first_line(e)}") from e
                        raise
                if _current(count) != before:
                    return False
            return True

    return held(device, {
        f"{name}_used_{'again' if times > 1 else 'once'}": partial(restored, name, times)
        for name, times in product(BLOCKS, (1, 2))
    })  # fmt: skip


#: Blocks without a device of the kind, or without a stream.
OF_NOTHING: dict[str, Callable[[str], Block]] = {
    "no_device": lambda kind: _made(kind, "device", None),
    "device_below_zero": lambda kind: _made(kind, "device", -1),
    "first_of_the_host": lambda kind: _made(kind, "device", torch.device("cpu", 0)),
    "device_of_a_host_tensor": lambda kind: _made(kind, "device_of", torch.ones(2)),
    "no_stream": lambda kind: _made(kind, "stream", None),
}


def _made(kind: str, name: str, of: Any) -> Block:
    return named(module_of(kind), name)(of)  # type: ignore[return-value]


@scenario(exact=True, area="devices", accelerators=True)
def of_nothing(device: str) -> Results:
    """A block with no device, one of the host, an index below zero or no stream leaves current what is so."""

    def unchanged(name: str) -> bool:
        accelerator(device)
        count, kind = torch.accelerator.device_count(), torch.device(device).type
        with on_device(count - 1), _stream(kind, count - 1) if name == "no_stream" else nullcontext():
            before = _current(count)
            within = before
            with ExitStack() as block:
                try:
                    block.enter_context(OF_NOTHING[name](kind))
                    within = _current(count)
                except (TypeError, ValueError, RuntimeError, AttributeError) as e:
                    if name != "first_of_the_host":  # it may be refused, or change nothing
                        raise NotOffered(first_line(e)) from e
            return before == within == _current(count)

    return held(device, {name: partial(unchanged, name) for name in OF_NOTHING})
