"""What a context is: how a call is made on both sides, where it applies, and which checks hold under it."""

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
# Microseconds by which work starts late in a context that is about the order of work.
DELAY = 3000


class How(NamedTuple):
    """What a context's call has to know besides the op and the device."""

    variant: str  # the case's
    facts: str  # of the overload, by ``facts_of``
    delayed: Callable[[], AbstractContextManager[Any]]  # within, work that is submitted starts late, if possible


class Context:
    """The plain call. A subclass changes what differs from it.

    ``call`` is copied into scripts. It imports what it needs, uses public names of torch only, and raises
    AssertionError if the call did something that its result does not show.
    """

    name: ClassVar[str] = ""
    unchecked: ClassVar[frozenset[Check]] = frozenset()  # checks that do not hold
    delays: ClassVar[bool] = False  # ``call`` lets work start late
    # CPU makes the plain call, and what the device runs besides the op is no part of what is tried.
    op_alone: ClassVar[bool] = False
    helpers: ClassVar[tuple[Callable[..., Any], ...]] = ()  # functions and classes of ``call``, copied into scripts
    per_family: ClassVar[int] = 0  # at most so many overloads of a family have cells; 0: all
    decorator: ClassVar[str] = ""  # in a script, of the function that makes the arguments and calls the op

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op. ``device`` is CPU or the device of the arguments."""
        return op(*args, **kwargs)

    def load(self) -> None:
        """Load what the calls need, before processes that make them are forked. Touches no device."""

    def lacks(self, backend: Capabilities) -> str:
        """Return what the backend lacks, "" if it has all that the context needs. Touches no device."""
        return ""

    def leaves_out(self, overload: str, backend: Capabilities) -> str:
        """Return why the backend does not offer the overload in this context, "" if it does. Touches no device."""
        return ""

    def applies(self, overload: Overload) -> bool:
        """Whether an overload has cells of this context."""
        return True

    def device(self, device: torch.device) -> torch.device:
        """Return the device of the arguments, by the backend's device."""
        return device

    def facts_of(self, overload: str) -> str:
        """Return what ``call`` has to know of an overload."""
        return ""

    def around(self) -> AbstractContextManager[Any]:
        """Return what the arguments are made in and the call is made in, on each side."""
        return nullcontext()

    def repeats(self, variant: str) -> bool:
        """Whether a call that agrees with CPU is made again, for the same bits."""
        return False

    def route(self, route: Route) -> Route:
        """Return the route by which the results are judged, by that of the overload."""
        return route

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        """Return the facts by which the results are judged, by those of the overload."""
        return facts

    def refuses(self, error: BaseException | None) -> bool:
        """Whether an error says that the op does not exist under this context, which is no defect."""
        return False

    @property
    def is_plain_on_cpu(self) -> bool:
        """Whether CPU makes the plain call, so that torch's other ways to compute the op are references as well."""
        return not self.name or self.op_alone

    def on_cpu(self, op: Op, overload: str, variant: str) -> Op:
        """Return the op as CPU is called with it."""
        if self.is_plain_on_cpu:
            return op
        return self._bound(op, CPU, How(variant, self.facts_of(overload), nullcontext))

    def on_device(self, op: Op, overload: str, variant: str, backend: Capabilities) -> Op:
        """Return the op as the device is called with it."""
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
    """Return how many devices the backend has, as far as ``torch.<device>`` says; at least 1."""
    count = getattr(getattr(torch, backend.kind, None), "device_count", None)
    if not callable(count):
        return 1
    return max(1, asked_in_fork(count) if backend.isolation == "fork" and backend.kind != "cpu" else int(count()))
