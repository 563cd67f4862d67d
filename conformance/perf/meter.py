"""The work of a measured run's children: find samples at sizes, measure cases and the limits of the machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from conformance import backends
from conformance.backends import Capabilities
from conformance.corpus import codec, reader
from conformance.corpus.model import Sample
from conformance.perf import work
from conformance.perf.clock import Timed, alternate
from conformance.perf.model import End, Limits, Machine, Size
from conformance.perf.sides import CPU, side
from conformance.perf.sizing import Sizer, Unsuitable

COPIED = 16 << 20  # elements of the copy that measures bandwidth: more than caches hold
MULTIPLIED = 384  # rows of the square matrices whose product measures operations
_WARM = 2  # calls before a case is measured, which resize outputs and load kernels


class Meter:
    """The server of the requests to one run's children, see :meth:`serve`."""

    def __init__(self, backend: Capabilities, dtype: str, seconds: float) -> None:
        """``seconds``: about how long a round of a case takes, with the search for the number of calls of a block."""
        torch.set_num_threads(backend.threads)
        self.backend = backend
        self.dtype = dtype
        self.seconds = seconds
        self.corpus = reader.load(generated=False)
        self._sizers: dict[str, Sizer] = {}  # only of the overload of the last request

    def recipe(self) -> dict[str, Any]:
        """Return a dictionary for JSON from which :meth:`made_from` makes the same meter in another process."""
        return {"backend": self.backend.asked, "dtype": self.dtype, "seconds": self.seconds}

    @staticmethod
    def made_from(recipe: dict[str, Any]) -> Meter:
        """Return the meter of a recipe. Raises the errors of finding the backend and of loading the corpus."""
        return Meter(backends.find(recipe["backend"]), recipe["dtype"], recipe["seconds"])

    def prepare(self) -> None:
        """Read the corpus values that every child needs, before the children start. Does not use the device."""
        self.corpus.load_values()

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer ``size`` (overload, size), ``measure`` (overload, sample, facts) or ``limits``."""
        warnings.simplefilter("ignore")  # some ops warn of a deprecation at every call
        return {"size": self._size, "measure": self._measure, "limits": self._limits}[request["do"]](request)

    def _size(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the encoded sample at a size, or the reason why there is none."""
        overload = request["overload"]
        if overload not in self._sizers:
            self._sizers = {overload: Sizer(self.corpus, self.dtype)}
        try:
            found = self._sizers[overload].at(self.corpus.recorded(overload), Size(request["size"]))
        except Unsuitable as e:
            return {"reason": str(e)}
        return {"sample": codec.encode(found, 0)}

    def _measure(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the times of a round, with ``facts`` also the work of the call; or how the case ended, and why."""
        sample = codec.decode(request["overload"], request["sample"], ((self.dtype,),))
        try:
            cpu = side(sample, self.dtype, self.corpus)
            _warm(cpu)
        except Exception as e:  # noqa: BLE001 - whatever CPU raises
            return {"end": End.UNSUITABLE.value, "reason": f"CPU raised {_told(e)}"}
        try:
            return self._timed(sample, cpu, facts=request["facts"])
        except Exception as e:  # noqa: BLE001 - whatever the device raises is the finding
            return {"end": End.UNSUPPORTED.value, "reason": _told(e)}

    def _timed(self, sample: Sample, cpu: Callable[[], object], *, facts: bool) -> dict[str, Any]:
        self.backend.initialize()
        device = side(sample, self.dtype, self.corpus, self.backend.device)
        _warm(device)
        self.backend.synchronize()
        found: dict[str, Any] = {"end": End.MEASURED.value}
        if facts:
            again = side(sample, self.dtype, self.corpus)
            _warm(again)
            found["work"] = asdict(work.of_call(again, device, self.backend))
        found["round"] = asdict(alternate(Timed(device, self.backend.synchronize), Timed(cpu, _nothing), self.seconds))
        return found

    def _limits(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the limits of both sides. A limit is None if its calls raise."""
        del request
        self.backend.initialize()
        return asdict(Machine(self._limits_of(self.backend.device), self._limits_of(CPU)))

    def _limits_of(self, device: str) -> Limits:
        def copy_of(elements: int) -> Callable[[], object]:
            to, source = (torch.ones(elements).to(device) for _ in range(2))
            return lambda: to.copy_(source)

        def product() -> Callable[[], object]:
            a, b = (torch.ones(MULTIPLIED, MULTIPLIED).to(device) for _ in range(2))
            return lambda: torch.mm(a, b)

        copied, multiplied = self._seconds(lambda: copy_of(COPIED), device), self._seconds(product, device)
        return Limits(
            bandwidth=2 * 4 * COPIED / copied if copied else None,
            flops=2 * MULTIPLIED**3 / multiplied if multiplied else None,
            launch=self._seconds(lambda: copy_of(1), device),
        )

    def _seconds(self, make: Callable[[], Callable[[], object]], device: str) -> float | None:
        """Return the seconds per call of the fastest of three blocks, None if the call raises."""
        wait = _nothing if device == CPU else self.backend.synchronize
        try:
            call = make()
            _warm(call)
            timed = Timed(call, wait)
            timed.settle(self.seconds / 10)
            return min(timed.block()[1] for _ in range(3))
        except Exception:  # noqa: BLE001 - it has no such limit
            return None


def _warm(call: Callable[[], object]) -> None:
    for _ in range(_WARM):
        call()


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def _nothing() -> None:
    """No-op: CPU's calls are done when they return."""
