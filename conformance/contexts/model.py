"""The model of a context: how a call is made on both sides, which overloads have cells, and which checks hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import torch

from conformance.backends import Capabilities
from conformance.inventory import Overload
from conformance.ops.family import OpFacts
from conformance.support.forking import asked_in_fork
from conformance.vocabulary import Check, Route

Op = Callable[..., Any]

CPU = torch.device("cpu")
# Microseconds by which work starts late in a context that tests the order of work.
DELAY = 3000


class How(NamedTuple):
    """The facts that a context's call needs besides the op and the device."""

    variant: str  # of the case
    facts: str  # of the overload, from ``facts_of``
    delayed: Callable[[], AbstractContextManager[Any]]  # inside it, submitted work starts late, if possible


class Context:
    """The plain call. A subclass overrides what differs from it.

    ``call`` is copied into scripts. It imports what it needs, uses public names of torch only, and raises
    AssertionError if the call did something wrong that its result does not show.
    """

    name: ClassVar[str] = ""
    unchecked: ClassVar[frozenset[Check]] = frozenset()  # checks that do not hold
    delays: ClassVar[bool] = False  # ``call`` lets work start late
    # CPU makes the plain call, and the context does not test what the device runs besides the op.
    op_alone: ClassVar[bool] = False
    helpers: ClassVar[tuple[Callable[..., Any], ...]] = ()  # functions and classes of ``call``, copied into scripts
    per_family: ClassVar[int] = 0  # the most overloads of a family that have cells; 0: all
    decorator: ClassVar[str] = ""  # of the function in a script that makes the arguments and calls the op

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op. ``device`` is CPU or the device of the arguments."""
        return op(*args, **kwargs)

    def load(self) -> None:
        """Load modules and caches for the calls, before the processes that make them are forked. Touches no device."""

    def lacks(self, backend: Capabilities) -> str:
        """Return the first requirement that the backend lacks, "" if there is none. Touches no device."""
        return ""

    def leaves_out(self, overload: str, backend: Capabilities) -> str:
        """Return why the backend does not offer the overload in this context, "" if it does. Touches no device."""
        return ""

    def applies(self, overload: Overload) -> bool:
        """Return whether an overload has cells of this context."""
        return True

    def device(self, device: torch.device) -> torch.device:
        """Return the device of the arguments, given the backend's device."""
        return device

    def facts_of(self, overload: str) -> str:
        """Return the facts of an overload that ``call`` needs."""
        return ""

    def around(self) -> AbstractContextManager[Any]:
        """Return the context manager in which arguments are made and the call is made, on each side."""
        return nullcontext()

    def repeats(self, variant: str) -> bool:
        """Return whether a call that agrees with CPU is made again, to compare its bits."""
        return False

    def route(self, route: Route) -> Route:
        """Return the route by which the results are judged, given the overload's route."""
        return route

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        """Return the facts by which the results are judged, given the overload's facts."""
        return facts

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether an error says that the op does not exist in this context, which is no defect."""
        return False

    @property
    def is_plain_on_cpu(self) -> bool:
        """Whether CPU makes the plain call, so that torch's other ways to compute the op are references as well."""
        return not self.name or self.op_alone

    def on_cpu(self, op: Op, overload: str, variant: str) -> Op:
        """Return the function that makes CPU's call of the op."""
        if self.is_plain_on_cpu:
            return op
        return self._bound(op, CPU, How(variant, self.facts_of(overload), nullcontext))

    def on_device(self, op: Op, overload: str, variant: str, backend: Capabilities) -> Op:
        """Return the function that makes the device's call of the op."""
        device = self.device(torch.device(backend.device))
        return self._bound(op, device, How(variant, self.facts_of(overload), partial(backend.delayed_work, DELAY)))

    def _bound(self, op: Op, device: torch.device, how: How) -> Op:
        if type(self).call is Context.call:
            return op

        def called(*args: Any, **kwargs: Any) -> Any:
            return self.call(op, device, how, args, kwargs)

        return called


@cache
def devices_of(backend: Capabilities) -> int:
    """Return the number of devices of the backend by ``torch.<device>.device_count``; at least 1."""
    count = getattr(getattr(torch, backend.kind, None), "device_count", None)
    if not callable(count):
        return 1
    return max(1, asked_in_fork(count) if backend.isolation == "fork" and backend.kind != "cpu" else int(count()))
