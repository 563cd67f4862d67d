"""A backend as the suite uses it, whatever its adapter offers."""

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

# The check that rests on a method of the adapter.
_CHECKED_BY = {
    "route_counters": "route", "memory_stats": "leak", "verify_memory": "redzone", "fill_fresh": "uninitialized",
}  # fmt: skip

# What fresh memory holds in the first call of a case: neither zeros nor what a freed result has left there. In a
# floating dtype it is a large, finite number, so that no comparison with it is unordered.
SOIL = 0x7B

# Bytes of blocks that are filled for what kernels may allocate besides their results, and of all blocks together.
_WORKSPACES = (512, 4 << 10, 32 << 10, 256 << 10)
_FILLED_AT_MOST = 256 << 20


class Capabilities:
    """A backend with every method there: what it does not offer does nothing, and is listed in ``missing``."""

    OPTIONAL = (
        "route_counters", "memory_stats", "synchronize", "verify_memory", "fill_fresh", "delay_work", "mark_step",
        "donate", "save", "build_info", "environment", "environments",
    )  # fmt: skip

    def __init__(self, backend: Any, module: str, asked: str = "") -> None:
        self.module = module  # importing it loads the device
        self.asked = asked or backend.name  # what :func:`find` finds it by
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
        self.subnormals: tuple[str, ...] = ()  # where the adapter does not say it: the dtypes whose are kept
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
        """Return when all submitted work is done; at once where the backend cannot tell."""
        if self._synchronize:
            self._synchronize()
        if self._reads_back_after_calls:
            self._read_back()

    def read_back_after_calls(self) -> None:
        """From now on, let :meth:`synchronize` also read an element back, where that works."""
        self._tries_read_back = True
        self._reads_back_after_calls = self._reads_back

    def late_error(self) -> BaseException | None:
        """Wait for all work of the device, and read an element back. Return the error that this raises.

        None for a device that failed to do this when the process began.
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
        """Fill an element and copy it to the host: many devices report the errors of earlier work then.

        Where filling is broken, an element is copied to the device and back: each cell would meet the damage.
        """
        import torch

        element = torch.zeros(1, device=self.device) if self._fills else torch.zeros(1).to(self.device)
        element.cpu()

    def without(self, broken: Iterable[str]) -> None:
        """Do without these methods, and without filling: the bring-up gate found that they do not work."""
        for method in broken:
            if method == "synchronize":
                self._synchronize = None
            elif method == "memory_stats":
                self._stats = None
            elif method == "fill":
                self._fills = False

    def initialize(self) -> None:
        """Use the device once, so that no case pays for what its first use in a process does, or fails with it."""
        if self._initialized:
            return
        self._initialized = True
        import torch

        with contextlib.suppress(RuntimeError, NotImplementedError):  # the gate and the cases say what does not work
            torch.empty(1, device=self.device)
            self.synchronize()
            self._read_back()
            self._reads_back = self.kind != "cpu"
            self._reads_back_after_calls = self._reads_back and self._tries_read_back

    @property
    def is_accelerator(self) -> bool:
        """Whether the device is torch's accelerator, so that ``torch.accelerator`` is about it."""
        return torch_versions.accelerator_of(self.kind) is not None

    @property
    def seedable(self) -> bool:
        """Whether ``torch.manual_seed`` reaches the device's generators."""
        return torch_versions.seeds(self.kind)

    def in_use(self) -> bool:
        """Whether a fork of this process could not use the device, as far as torch's module of it can tell."""
        import torch

        initialized = getattr(getattr(torch, self.kind, None), "is_initialized", None)
        if self.kind == "cpu" or (initialized is not None and initialized()):
            return self.kind != "cpu"
        return self.isolation == "fork" and bool(asked_in_fork(partial(torch_versions.is_in_bad_fork, self.kind)))

    def unchecked(self) -> str:
        """What cannot be checked, and which methods the backend would have to offer; "" when nothing is missing."""
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
        """(native, fallback) calls so far, or None where the backend does not count."""
        return self._counters() if self._counters else None

    def live_memory(self) -> tuple[int, int]:
        """(blocks, bytes) of device memory given out now; zeros where the backend does not say."""
        if not self._stats:
            return 0, 0
        stats = self._stats()
        return stats["live_blocks"], stats["live_bytes"]

    def verify_memory(self) -> list[str]:
        """Damage found in the allocator's bookkeeping; empty where the backend cannot tell."""
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
        """Within, device memory that is given out holds :data:`SOIL`, unless the environment fills it.

        Changes nothing where the backend does not offer it.
        """
        return self._filled(SOIL) if self.soils_memory else contextlib.nullcontext()

    @contextlib.contextmanager
    def fresh_memory(self, byte: int, sizes: Iterable[int] = ()) -> Iterator[None]:
        """Within, device memory that is given out holds ``byte``.

        Where the backend does not offer that, blocks of ``sizes`` bytes and of some others are filled and freed before:
        most allocators give freed blocks out again.
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
        except Exception:  # noqa: BLE001 - a device without bytes or fill_, whose kernels see what memory holds anyway
            self._frees_filled = False

    @property
    def delays_work(self) -> bool:
        """Whether work starts late within :meth:`delayed_work`."""
        return self._delay is not None

    @contextlib.contextmanager
    def delayed_work(self, us: int, seed: int | None = None) -> Iterator[None]:
        """Within, work starts late, as :meth:`Backend.delay_work` says.

        Where the backend cannot do that, other work of about ``us`` microseconds is submitted first.
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
        """End the step of a backend that records work; returns whether the backend has steps."""
        if self._mark_step:
            self._mark_step()
        return self._mark_step is not None

    @property
    def donates(self) -> bool:
        """Whether the memory of a tensor can be donated."""
        return self._donate is not None

    def donate(self, tensor: torch.Tensor) -> None:
        """Let the end of the step take the memory of a tensor; does nothing where the backend cannot."""
        if self._donate:
            self._donate(tensor)

    @property
    def saves(self) -> bool:
        """Whether the backend has a way to save besides ``torch.save``."""
        return self._save is not None

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Write a value to a file in the backend's own way; by ``torch.save`` where the backend has none."""
        import torch

        (self._save or torch.save)(value, file)

    def build_info(self) -> dict[str, Any]:
        """Facts of the build; empty where the backend does not say."""
        return dict(self._info()) if self._info else {}

    def environment(self) -> str:
        """The environment's name, "default" where the backend does not say."""
        return str(self._environment()) if self._environment else "default"

    def environments(self) -> dict[str, dict[str, str]]:
        """Environments worth trying when something goes wrong; empty where the backend does not say."""
        return dict(self._environments()) if self._environments else {}

    def expected(self) -> object:
        """Return what the adapter names as the path of its known failures; None where it names none."""
        return self._expected() if callable(self._expected) else self._expected


def _two_of_each(sizes: Iterable[int]) -> list[int]:
    """Return the sizes in bytes of the blocks to fill: two of each size, the smallest ones that fit together."""
    wanted: list[int] = []
    for size in sorted(sizes):
        if size > 0 and sum(wanted) + 2 * size <= _FILLED_AT_MOST:
            wanted += [size, size]
    return wanted


def with_index(device: str) -> str:
    """``mydev:0`` for ``mydev``, as a tensor made there says where it lies. ``cpu`` and ``meta`` have no index."""
    return device if ":" in device or device in ("cpu", "meta") else f"{device}:0"
