"""The kinds of steps of a walk: each writes lines of its script, and what the device has to answer behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.scenarios.walk_state import State, Step, Tensor

Write = Callable[[State, Step], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step. ``needs``: kinds that come first where it is tried alone. ``weight``: how often it is drawn."""

    write: Write
    area: str
    needs: tuple[str, ...] = ()
    weight: int = 1

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.write.__name__


KINDS: dict[str, Kind] = {}


def kind(area: str, *needs: str, weight: int = 1) -> Callable[[Write], Write]:
    """Register a function as the kind of step of its name, see :class:`Kind`."""

    def register(write: Write) -> Write:
        KINDS[write.__name__] = Kind(write, area, needs, weight)
        return write

    return register


def device_of(s: State, step: Step) -> int:
    """Return the index of a device."""
    return step.pick("device", s.devices)


def form_of(s: State, step: Step, device: int) -> str:
    """Return a device in one of the forms that functions take."""
    return step.pick("form", (str(device), s.name(device), f"torch.device({s.name(device)})"))


def tensor_of(s: State, step: Step) -> Tensor:
    """Return a tensor. Raises NotPossible if there is none."""
    return s.tensors[step.pick("tensor", s.tensors)]
