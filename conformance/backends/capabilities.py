"""A backend as the suite uses it, with defaults for the methods that its adapter lacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from conformance import torch_versions
from conformance.backends.real_work import RealWork
from conformance.bare_device import BareDevice
from conformance.support.forking import asked_in_fork

if TYPE_CHECKING:
    import torch

# The check that needs a method of the adapter, by the method.
_CHECKED_BY = {
    "route_counters": "route", "memory_stats": "leak", "verify_memory": "redzone", "fill_fresh": "uninitialized",
}  # fmt: skip

# The byte that fills fresh memory in the first call of a case, instead of zeros or the values of a freed result. In a
# floating dtype, the filled elements are large, finite numbers, so that no comparison with them is unordered.
SOIL = 0x7B

# Bytes of the blocks that are filled for the workspaces that kernels may allocate, and of all filled blocks together.
_WORKSPACES = (512, 4 << 10, 32 << 10, 256 << 10)
_FILLED_AT_MOST = 256 << 20


class Capabilities:
    """A backend with all methods. A method that its adapter lacks does nothing, and is listed in ``missing``."""

    OPTIONAL = (
        "route_counters", "memory_stats", "synchronize", "verify_memory", "fill_fresh", "delay_work", "mark_step",
        "donate", "save", "build_info", "environment", "environments",
    )  # fmt: skip

    def __init__(self, backend: Any, module: str, asked: str = "") -> None:
        self.module = module  # importing it loads the device
        self.asked = asked or backend.name  # the name by which :func:`find` finds the backend
        self.isolation: str = getattr(backend, "isolation", "fork")
        self.name: str = backend.name
        self.device: str = with_index(backend.device)
        self.missing = tuple(m for m in self.OPTIONAL if not callable(getattr(backend, m, None)))
        self._counters = getattr(backend, "route_counters", None)
        self._stats = getattr(backend, "memory_stats", None)
        self._verify = getattr(backend, "verify_memory", None)
        self._fill = getattr(backend, "fill_fresh", None)
        self._is_filled = bool(getattr(backend, "fills_fresh", False))
        self._delay = getattr(backend, "delay_work", None)
        self._mark_step = getattr(backend, "mark_step", None)
        self._donate = getattr(backend, "donate", None)
        self._save = getattr(backend, "save", None)
        self._info = getattr(backend, "build_info", None)
        self._environment = getattr(backend, "environment", None)
        self._environments = getattr(backend, "environments", None)
        self._expected = getattr(backend, "expected", None)
        self._synchronize = getattr(backend, "synchronize", None)
        self._real_work = RealWork(self.kind, self.synchronize)
        self.keeps_subnormals: bool | None = getattr(backend, "keeps_subnormals", None)
        self.subnormals: tuple[str, ...] = ()  # if the adapter does not say: the dtypes with subnormal numbers
        self.sticky_errors = bool(getattr(backend, "sticky_errors", False))
        self.hidden_by: dict[str, str] = dict(getattr(backend, "hidden_by", {}))
        self.threads = int(getattr(backend, "threads", 1))
        self.bare = isinstance(backend, BareDevice)
        self._initialized = False
        self._reads_back = self._reads_back_after_calls = self._tries_read_back = False
        self._fills = self._frees_filled = True

    @property
    def kind(self) -> str:
        """The device's type, e.g. ``mydev``."""
        return self.device.partition(":")[0]

    def synchronize(self) -> None:
        """Return when all submitted work is done, or at once if the adapter lacks this method."""
        if self._synchronize:
            self._synchronize()
        if self._reads_back_after_calls:
            self._read_back()

    def read_back_after_calls(self) -> None:
        """From now on, let :meth:`synchronize` also read an element back, if that works."""
        self._tries_read_back = True
        self._reads_back_after_calls = self._reads_back

    def late_error(self) -> BaseException | None:
        """Wait for all work of the device, and read an element back. Return the error that this raises.

        Return None if the device could not do this when the process first used it.
        """
        if not self._reads_back:
            return None
        try:
            self.synchronize()
            self._read_back()
        except Exception as e:  # noqa: BLE001  # whatever the device raises is the finding
            return e.with_traceback(None)
        return None

    def _read_back(self) -> None:
        """Fill an element and copy it to the host, because many devices then report the errors of earlier work.

        If filling is broken, copy an element to the device and back instead. Otherwise, each cell would meet the error.
        """
        import torch

        element = torch.zeros(1, device=self.device) if self._fills else torch.zeros(1).to(self.device)
        element.cpu()

    def without(self, broken: Iterable[str]) -> None:
        """From now on, do without these methods, or without "fill", which the bring-up gate found broken."""
        for method in broken:
            if method == "synchronize":
                self._synchronize = None
            elif method == "memory_stats":
                self._stats = None
            elif method == "fill":
                self._fills = False

    def initialize(self) -> None:
        """Use the device once, so that no case pays for the device's first use in a process, or fails because of it."""
        if self._initialized:
            return
        self._initialized = True
        import torch

        with contextlib.suppress(RuntimeError, NotImplementedError):  # the gate and the cases report the errors
            torch.empty(1, device=self.device)
            self.synchronize()
            self._read_back()
            self._reads_back = self.kind != "cpu"
            self._reads_back_after_calls = self._reads_back and self._tries_read_back

    @property
    def is_accelerator(self) -> bool:
        """Whether the device is torch's accelerator, to which ``torch.accelerator`` applies."""
        return torch_versions.accelerator_of(self.kind) is not None

    @property
    def seedable(self) -> bool:
        """Whether ``torch.manual_seed`` reaches the device's generators."""
        return torch_versions.seeds(self.kind)

    def in_use(self) -> bool:
        """Return whether a fork of this process could not use the device, as far as the device's module can tell."""
        import torch

        initialized = getattr(getattr(torch, self.kind, None), "is_initialized", None)
        if self.kind == "cpu" or (initialized is not None and initialized()):
            return self.kind != "cpu"
        return self.isolation == "fork" and bool(asked_in_fork(partial(torch_versions.is_in_bad_fork, self.kind)))

    def unchecked(self) -> str:
        """Return notes on what cannot be checked, with the methods that the checks need; "" if nothing is missing."""
        freed = self._fill is None and self.fills_memory
        missing = [method for method in self.missing if method != "fill_fresh" or not freed]
        lost = [f"{check} (needs {method})" for method, check in _CHECKED_BY.items() if method in missing]
        notes = (
            [f"not checked, as the backend's adapter does not offer what is needed: {', '.join(lost)}"] if lost else []
        )
        if freed:
            notes.append("uninitialized is checked with blocks that were filled and freed (fill_fresh would fill all)")
        if "synchronize" in self.missing and self.kind != "cpu":
            notes.append("no synchronize: an error of work that is still queued may be charged to a later cell")
        if not self.seedable:
            needs = f"torch.{self.kind} needs manual_seed_all and _is_in_bad_fork"
            notes.append(f"random ops are not checked for determinism: torch.manual_seed does not reach them ({needs})")
        return "\n".join(notes)

    def route_counters(self) -> tuple[int, int] | None:
        """Return the numbers of (native, fallback) calls so far, None if the backend does not count them."""
        return self._counters() if self._counters else None

    def live_memory(self) -> tuple[int, int]:
        """Return (blocks, bytes) of the device memory that is allocated now; zeros if the adapter lacks this method."""
        if not self._stats:
            return 0, 0
        stats = self._stats()
        return stats["live_blocks"], stats["live_bytes"]

    def verify_memory(self) -> list[str]:
        """Return the damage in the allocator's bookkeeping, an empty list if the adapter lacks this method."""
        return list(self._verify()) if self._verify else []

    @property
    def fills_memory(self) -> bool:
        """Whether :meth:`fresh_memory` has an effect, as far as is known."""
        return self._fill is not None or (self._fills and self._frees_filled)

    @property
    def soils_memory(self) -> bool:
        """Whether :meth:`soiled_memory` has an effect."""
        return self._fill is not None and not self._is_filled

    def soiled_memory(self) -> contextlib.AbstractContextManager[None]:
        """Fill device memory that is allocated within this context with :data:`SOIL`, unless the environment fills it.

        Does nothing if the adapter cannot fill memory.
        """
        return self._filled(SOIL) if self.soils_memory else contextlib.nullcontext()

    @contextlib.contextmanager
    def fresh_memory(self, byte: int, sizes: Iterable[int] = ()) -> Iterator[None]:
        """Fill device memory that is allocated within this context with ``byte``.

        If the adapter cannot fill memory, blocks of ``sizes`` bytes and of some other sizes are filled and freed
        before, because most allocators give freed blocks out again.
        """
        if self._fill is None:
            self._free_filled(byte, sizes)
            yield
            return
        with self._filled(byte):
            yield

    @contextlib.contextmanager
    def _filled(self, byte: int) -> Iterator[None]:
        assert self._fill
        self._fill(byte)
        try:
            yield
        finally:
            self._fill(None)

    def _free_filled(self, byte: int, sizes: Iterable[int]) -> None:
        if not self.fills_memory:
            return
        import torch

        try:
            wanted = _two_of_each((*sizes, *_WORKSPACES))
            blocks = [torch.empty(n, dtype=torch.uint8, device=self.device) for n in wanted]
            for block in blocks:
                block.fill_(byte)
            self.synchronize()
        except Exception:  # noqa: BLE001 - a device without uint8 or fill_: its memory is left as it is
            self._frees_filled = False

    @property
    def delays_work(self) -> bool:
        """Whether work starts late within :meth:`delayed_work`."""
        return self._delay is not None

    @contextlib.contextmanager
    def delayed_work(self, us: int, seed: int | None = None) -> Iterator[None]:
        """Let work that is submitted within this context start late, as by :meth:`Backend.delay_work`.

        If the adapter lacks this method, other work of about ``us`` microseconds is submitted first.
        """
        if self._delay is None:
            self._real_work.submit(us)
            yield
            return
        self._delay(us, seed)
        try:
            yield
        finally:
            self._delay(None)

    def mark_step(self) -> bool:
        """End the step of a backend that records work. Return whether the backend has steps."""
        if self._mark_step:
            self._mark_step()
        return self._mark_step is not None

    @property
    def donates(self) -> bool:
        """Whether the memory of a tensor can be donated."""
        return self._donate is not None

    def donate(self, tensor: torch.Tensor) -> None:
        """Let the end of the step reuse the memory of a tensor. Does nothing if the adapter lacks this method."""
        if self._donate:
            self._donate(tensor)

    @property
    def saves(self) -> bool:
        """Whether the backend has a way to save besides ``torch.save``."""
        return self._save is not None

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Write a value to a file in the backend's own format, or with ``torch.save`` if the backend has none."""
        import torch

        (self._save or torch.save)(value, file)

    def build_info(self) -> dict[str, Any]:
        """Return facts of the build, {} if the adapter lacks this method."""
        return dict(self._info()) if self._info else {}

    def environment(self) -> str:
        """Return the environment's name, "default" if the adapter lacks this method."""
        return str(self._environment()) if self._environment else "default"

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments in which to look for the cause of a failure, {} if the adapter lacks this method."""
        return dict(self._environments()) if self._environments else {}

    def expected(self) -> object:
        """Return the path of the known failures as the adapter names it, None if it names none."""
        return self._expected() if callable(self._expected) else self._expected


def _two_of_each(sizes: Iterable[int]) -> list[int]:
    """Return the sizes in bytes of the blocks to fill: two of each size, from the smallest up, within the limit."""
    wanted: list[int] = []
    for size in sorted(sizes):
        if size > 0 and sum(wanted) + 2 * size <= _FILLED_AT_MOST:
            wanted += [size, size]
    return wanted


def with_index(device: str) -> str:
    """Return ``mydev:0`` for ``mydev``, as in the ``device`` of a tensor. ``cpu`` and ``meta`` have no index."""
    return device if ":" in device or device in ("cpu", "meta") else f"{device}:0"
