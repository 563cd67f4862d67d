"""A scenario: a small program that runs on CPU and on the device, and whose results must be equal."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


class NotOffered(Exception):
    """An error that names what a backend, or this torch, does not offer. It is not a failure of a scenario."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A result in place of a tensor: lines of a program, one of which goes wrong."""

    lines: tuple[str, ...]
    at: int  # the index of the line that goes wrong, -1 if it is not known
    error: tuple[str, str] | None  # type and first line of the error; None for an assertion that does not hold

    @property
    def kind(self) -> str:
        """The type of the error; "" for an assertion that does not hold."""
        return self.error[0] if self.error else ""

    @property
    def is_wrong(self) -> bool:
        """Whether it is a failure. A device may raise NotImplementedError for any call."""
        return self.kind != NotImplementedError.__name__


#: The results of a scenario by name. For a result that is not offered, the reason.
Results = dict[str, torch.Tensor | NotOffered | Broken]
Program = Callable[[str], Results]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program. ``exact``: its results must be equal in every bit. ``slow``: only tiers with time for it run it."""

    name: str  # module:function
    run: Program
    exact: bool = False
    slow: bool = False
    area: str = ""  # the area of PyTorch's contract with devices, "" if the program tries no promise of it
    compiles: bool = False  # calls torch.compile, which takes seconds: only the tier with all contexts runs it
    accelerators: bool = False  # the promise is about accelerators alone; CPU's results are the expected ones

    @property
    def promise(self) -> str:
        """The promise that the program tries: the first line of its docstring."""
        return (self.run.__doc__ or "").strip().partition("\n")[0]

    @property
    def module(self) -> str:
        """The name of the program's module in this package."""
        return self.name.partition(":")[0]


SCENARIOS: dict[str, Scenario] = {}
#: The environment variables that hide all devices from a new process, from the backend's adapter, by the type of its
#: device. The caller of a program enters them.
HIDDEN_BY: dict[str, Mapping[str, str]] = {}
#: The primitives that the bring-up gate found broken, by the type of the device. Lines that need one are left out.
BROKEN_PRIMITIVES: dict[str, frozenset[str]] = {}


def scenario(
    *, exact: bool = False, slow: bool = False, area: str = "", compiles: bool = False, accelerators: bool = False
) -> Callable[[Program], Program]:
    """Return a decorator that registers a program ``run(device)`` as a scenario with the name of its function."""

    def register(run: Program) -> Program:
        name = f"{run.__module__.rpartition('.')[2]}:{run.__name__}"
        if name in SCENARIOS:
            raise ValueError(f"two scenarios are called {name}")
        SCENARIOS[name] = Scenario(name, run, exact, slow, area, compiles, accelerators)
        return run

    return register


def unless_first(device: str) -> tuple[int, ...]:
    """Return the index of a device as an argument, none for the first: not every module's functions take a device."""
    index = torch.device(device).index
    return (index,) if index else ()


def offered(result: Callable[[], torch.Tensor]) -> torch.Tensor | NotOffered:
    """Return a result, or NotOffered if the call raises NotOffered or NotImplementedError."""
    try:
        return result()
    except NotOffered as e:
        return e
    except NotImplementedError as e:
        return NotOffered(first_line(e))


def works(device: str, primitive: str) -> bool:
    """Return whether a primitive works on the device, as far as the bring-up gate was asked."""
    return primitive not in BROKEN_PRIMITIVES.get(device.partition(":")[0], ())


def broken(primitive: str) -> NotOffered:
    """Return NotOffered, the result of a line that needs a primitive which the bring-up gate found broken."""
    return NotOffered(f"{primitive}, which the bring-up gate found broken")


def needs(device: str, primitive: str) -> None:
    """Raise NotOffered if the rest of a line needs a primitive that the bring-up gate found broken."""
    if not works(device, primitive):
        raise broken(primitive)


def conjugated(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view with the conjugate bit. Raises NotOffered for a device on which the bit is broken."""
    needs(tensor.device.type, "conjugate")
    return tensor.conj()


def negated(tensor: torch.Tensor) -> torch.Tensor:
    """Return the imaginary part of the conjugate, with the negative bit. Raises NotOffered where the bit is broken."""
    needs(tensor.device.type, "negative")
    return tensor.conj().imag


def first_line(e: BaseException) -> str:
    """Return the first line of an error's message."""
    return next(iter(str(e).strip().splitlines()), type(e).__name__)


def reloaded(value: Any, **how: Any) -> Any:
    """Return a value after it was saved and loaded. ``how``: arguments of :func:`torch.load`."""
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **how)


def on(device: str, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on the device. Raises NotOffered for a dtype that the device does not have."""
    try:
        return tensor.to(device)
    except (TypeError, NotImplementedError) as e:
        raise NotOffered(f"{tensor.dtype}: {first_line(e)}") from e
    except RuntimeError as e:
        if holds(device, tensor.dtype):
            raise
        raise NotOffered(f"{tensor.dtype}: {first_line(e)}") from e


def name_of(dtype: torch.dtype) -> str:
    """Return a dtype's name without torch's, e.g. ``float16``."""
    return str(dtype).removeprefix("torch.")


def holds(device: str, dtype: torch.dtype) -> bool:
    """Return whether numbers of a dtype can be sent to the device and back."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about complex32
            torch.tensor([0, 1]).to(dtype).to(device).cpu()
    except Exception:  # noqa: BLE001  # whatever a backend raises
        return False
    return True


def laid_out(device: str, *numbers: int) -> torch.Tensor | NotOffered:
    """Return strides, offsets and sizes of storages as a tensor; NotOffered if the device's tensors have no strides."""
    if torch.empty((2, 3), device=device).t().stride() == (1, 3):
        return torch.tensor(numbers)
    return NotOffered("tensors with strides")


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested tuples and lists, in order."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors_of(v)]
    return [value] if isinstance(value, torch.Tensor) else []
