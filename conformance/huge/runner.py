"""The runner of programs on huge tensors: in a child process each, one after the other, if its tensors fit."""

from __future__ import annotations

import contextlib
import resource
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.huge.bench import BYTES, CHUNK, ELEMENTS, Bench, Difference
from conformance.huge.programs import PROGRAMS
from conformance.running.child import BROKEN, Child, Death, Hang
from conformance.support.signals import signal_name
from conformance.support.suggestions import unknown

# Bytes of host memory for the chunks, and bytes that are left to the rest of the system.
_OF_HOST = 32 * CHUNK
_LEFT = 1 << 30


@dataclass(frozen=True, slots=True)
class Needed:
    """The reason why a program did not run: the bytes that it needs, and the fewer bytes that are free."""

    bytes: int
    free: int
    where: str  # "the device" or "the host"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a program. The program held if no other field is set."""

    name: str
    difference: Difference | None = None
    error: str = ""  # the exception, or the end of the process
    lacking: Needed | None = None
    out_of_memory: str = ""  # the error, if the op needs more memory than its tensors and there was not enough

    @property
    def failed(self) -> bool:
        return bool(self.difference or self.error)

    @property
    def ran(self) -> bool:
        return not (self.lacking or self.out_of_memory)

    def text(self) -> str:
        if self.lacking:
            need = f"it needs {_gib(self.lacking.bytes)} of {self.lacking.where}'s memory"
            return f"{self.name}: NOT RUN: {need}, and {_gib(self.lacking.free)} are free"
        if self.out_of_memory:
            return f"{self.name}: NOT RUN: out of memory, the op takes more than its tensors: {self.out_of_memory}"
        if self.difference:
            d = self.difference
            at = d.index[0] if len(d.index) == 1 else d.index
            return f"{self.name}: FAILED: {d.what} at {at}, the first that is wrong: {d.actual}, expected {d.expected}"
        return f"{self.name}: FAILED: {self.error}" if self.error else f"{self.name}: held"


def names() -> list[str]:
    """Return the names of all programs."""
    return list(PROGRAMS)


def needs(name: str) -> str:
    """Return the name of a program and the memory that it needs, in words."""
    return f"{name}: {_gib(PROGRAMS[name].device_bytes(Bench(torch.device('cpu'))))} of device memory"


def run(
    name: str, backend: Capabilities, timeout: float, elements: int = ELEMENTS, size: int = BYTES, chunk: int = CHUNK
) -> Result:
    """Run a program in a child process. ``timeout``: seconds. Raises LookupError for an unknown name."""
    if name not in PROGRAMS:
        raise LookupError(unknown("program", name, names(), "conformance huge --list"))
    bench = Bench(torch.device(backend.device), elements, size, chunk)
    child = Child(lambda _: _in_child(name, backend, bench))
    try:
        reply = child.ask(None, timeout)
    finally:
        child.close()
    if isinstance(reply, Hang):
        return Result(name, error=f"the program did not end within {reply.seconds:g} s")
    if isinstance(reply, Death):
        died = f"the process died: {signal_name(reply.status)}"
        return Result(name, error="the program itself broke" if reply.status == BROKEN else died)
    difference, lacking = reply["difference"], reply["lacking"]
    return Result(
        name,
        Difference(**(difference | {"index": tuple(difference["index"])})) if difference else None,
        reply["error"],
        Needed(**lacking) if lacking else None,
        reply["out_of_memory"],
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


# In the child --------------------------------------------------------------------------------------------------------


def _in_child(name: str, backend: Capabilities, bench: Bench) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the parent's threads do not exist in the child, which would wait for them
    lacking = _lacking(PROGRAMS[name].device_bytes(bench), bench)
    reply: dict[str, Any] = {"difference": None, "error": "", "lacking": None, "out_of_memory": ""}
    if lacking:
        return reply | {"lacking": asdict(lacking)}
    if _may_use_host(bench.device):
        _limit_memory(_free_of_host() - _LEFT)
    try:
        found = next((f for f in PROGRAMS[name].run(bench) if f), None)
        backend.synchronize()
    except (torch.OutOfMemoryError, MemoryError) as e:
        return reply | {"out_of_memory": _line(e)}
    except Exception as e:  # noqa: BLE001  # whatever the device raises is the finding
        return reply | {"error": f"the device raised {_line(e)}"}
    return reply | {"difference": asdict(found) if found else None}


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _limit_memory(more: int) -> None:
    """Limit this process to ``more`` further bytes, so that allocations fail before the system kills a process."""
    used = next(int(line.split()[1]) * 1024 for line in _lines("/proc/self/status") if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + more, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _lacking(needed: int, bench: Bench) -> Needed | None:
    """Return the memory that the program needs and cannot have, None if there is enough.

    A device that does not report its free memory may use the host's memory.
    """
    free = _free_of_device(bench.device)
    if free is not None and free < needed:
        return Needed(needed, free, "the device")
    of_host = min(_OF_HOST, 32 * bench.chunk) + (needed if _may_use_host(bench.device) else 0)
    there = _free_of_host()
    return Needed(of_host, there, "the host") if there - _LEFT < of_host else None


def _free_of_device(device: torch.device) -> int | None:
    """Return the free bytes of a device, None if the device does not report them."""
    module = getattr(torch, device.type, None)
    with contextlib.suppress(Exception):  # the module has no such function, or not for this device
        return int(module.mem_get_info(device)[0])  # type: ignore[union-attr]
    return None


def _may_use_host(device: torch.device) -> bool:
    """Return whether device memory may be host memory: on all devices but accelerators with memory of their own."""
    return device.type not in ("cuda", "xpu")


def _free_of_host() -> int:
    """Return the bytes that can be allocated without swapping."""
    return next(int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemAvailable:"))


def _lines(file: str) -> list[str]:
    return Path(file).read_text(encoding="utf-8").splitlines()
