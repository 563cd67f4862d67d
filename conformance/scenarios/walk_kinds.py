"""The kinds of steps of a walk. Each writes lines of its script, and records what the device must answer after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.scenarios.walk_state import State, Step, Tensor

Write = Callable[[State, Step], None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of step. ``needs``: kinds that precede it when it is tried alone. ``weight``: how often it is drawn."""

    write: Write
    area: str
    needs: tuple[str, ...] = ()
    weight: int = 1

    @property
    def name(self) -> str:
        """The name of the kind's function."""
        return self.write.__name__


KINDS: dict[str, Kind] = {}


def kind(area: str, *needs: str, weight: int = 1) -> Callable[[Write], Write]:
    """Return a decorator that registers a function as a kind of step with its name. See :class:`Kind`."""

    def register(write: Write) -> Write:
        KINDS[write.__name__] = Kind(write, area, needs, weight)
        return write

    return register


def device_of(s: State, step: Step) -> int:
    """Return the index of a device that the step picks."""
    return step.pick("device", s.devices)


def form_of(s: State, step: Step, device: int) -> str:
    """Return a device in one of the forms that functions take. The step picks the form."""
    return step.pick("form", (str(device), s.name(device), f"torch.device({s.name(device)})"))


def tensor_of(s: State, step: Step) -> Tensor:
    """Return a tensor that the step picks. Raises NotPossible if there is none."""
    return s.tensors[step.pick("tensor", s.tensors)]
