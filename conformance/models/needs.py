"""The operators that the calls of recorded models need, and that a backend lacks or leaves to its fallback. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from conformance.models.model import Below, ModelCall, Recording
from conformance.vocabulary import Route


@dataclass
class Use:
    """The calls that need an operator. ``models``: their number, by model; ``copied``: bytes that a fallback copies.

    ``overloads``: those of the operator that the calls need.
    """

    models: Counter[str] = field(default_factory=Counter)
    copied: int = 0
    overloads: set[str] = field(default_factory=set)

    @property
    def calls(self) -> int:
        """The number of calls in all models."""
        return sum(self.models.values())

    def add(self, model: str, call: ModelCall, overloads: Iterable[str]) -> None:
        """Add all calls of a kind, which need these overloads."""
        self.overloads.update(overloads)
        self.models[model] += call.count
        self.copied += call.count * call.copied


class Served:
    """How a backend serves overloads, through the kernels that torch has for all devices.

    An overload whose route is unknown counts as served.
    """

    def __init__(self, routes: Mapping[str, str], below: Below) -> None:
        """``routes``: by overload; ``below``: see :func:`conformance.models.file.below`."""
        self._routes = routes
        self._below = below
        self._reached: dict[str, frozenset[str]] = {}

    def reached(self, overload: str) -> frozenset[str]:
        """Return the overload and, if it is composite, the overloads that it calls, and so on down to the kernels."""
        if overload not in self._reached:
            found, left = {overload}, [overload]
            while left:
                inner = self._inner(left.pop())
                left += [name for name in inner if name not in found]
                found.update(inner)
            self._reached[overload] = frozenset(found)
        return self._reached[overload]

    def lacking(self, overload: str) -> frozenset[str]:
        """Return the overloads without a kernel that a call of this overload reaches."""
        return self._with(overload, Route.UNSUPPORTED)

    def falling_back(self, overload: str) -> frozenset[str]:
        """Return the overloads that a call of this overload reaches and that the backend's fallback serves."""
        return self._with(overload, Route.FALLBACK)

    def unknown(self, overloads: Iterable[str]) -> frozenset[str]:
        """Return the overloads whose routes are unknown."""
        return frozenset(overloads) - self._routes.keys()

    def _inner(self, overload: str) -> tuple[str, ...]:
        return self._below.get(overload, ()) if self._routes.get(overload) == Route.COMPOSITE else ()

    def _with(self, overload: str, route: Route) -> frozenset[str]:
        return frozenset(name for name in self.reached(overload) if self._routes.get(name) == route)


def lacking(recordings: Iterable[Recording], served: Served) -> dict[str, Use]:
    """Return the calls that need each operator without a kernel, by operator."""
    return _uses(recordings, served.lacking)


def falling_back(recordings: Iterable[Recording], served: Served) -> dict[str, Use]:
    """Return the calls that use each operator that the fallback serves, by operator.

    The copied bytes are counted for the whole call. Those of an operator inside of a composite are about the same.
    """
    return _uses(recordings, served.falling_back)


def form(operator: str) -> str:
    """Return the operator of an in-place form: ``masked_fill`` for ``masked_fill_``; ``__and__`` stays."""
    return operator if operator.endswith("__") else operator.removesuffix("_")


def operator_of(overload: str) -> str:
    """Return the operator that an overload is a form of: ``add`` for ``add_.Tensor``."""
    return form(overload.partition(".")[0])


def _uses(recordings: Iterable[Recording], found: Callable[[str], frozenset[str]]) -> dict[str, Use]:
    uses: dict[str, Use] = defaultdict(Use)
    for recording in recordings:
        for call in recording.calls:
            needed = defaultdict(set)
            for name in found(call.overload):
                needed[operator_of(name)].add(name)
            for operator, overloads in needed.items():
                uses[operator].add(recording.name, call, overloads)
    return dict(uses)
