"""The records of `conformance aoti`: inputs, calls, observations, findings. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from conformance.vocabulary import Word

Shape = tuple[int, ...]

SWITCH = "AOTI_RUNTIME_CHECK_INPUTS"


class Axis(Word):
    """The difference of a call's inputs from the inputs that the model was compiled with."""

    NOTHING = "nothing", "the example inputs themselves"
    DEVICE = "device", "an input is on another device"
    DTYPE = "dtype", "an input has another dtype"
    RANK = "rank", "an input has a dimension more or less"
    SIZE = "size", "a dimension of one input has another size"
    SIZES = "sizes", "the dimensions that belong together have another size, in all inputs that have them"
    STRIDE = "stride", "an input has the same values at other strides"
    OFFSET = "offset", "an input begins behind the start of its storage, at a multiple of 64 bytes"
    ALIGNMENT = "alignment", "an input begins at an address that is no multiple of 64 bytes"
    NUMBER = "number", "there is an input more or less"
    LOAD = "load", "the model is loaded for another device than that it was compiled for"


class Api(Word):
    """The functions that compile and load a model."""

    CURRENT = "current", "torch._inductor.aoti_compile_and_package and aoti_load_package"
    DEPRECATED = "deprecated", "torch._export.aot_compile and aot_load"


class End(Word):
    """The end of a call of a compiled model, compared with eager on the same inputs."""

    RIGHT = "right", "the outputs are those of eager"
    CLEAR_ERROR = "clear error", "an error that names the input that is wrong"
    OTHER_ERROR = "other error", "an error that does not name the input"
    GARBAGE = "silent garbage", "outputs that are not those of eager, or outputs where eager raises, and no error"
    CRASH = "crash", "the process died, or the call did not end in time"
    NOT_JUDGED = "not judged", "the process died before the call, so there is nothing to compare"

    @property
    def is_finding(self) -> bool:
        """Whether the caller gets no error that it could handle."""
        return self in (End.GARBAGE, End.CRASH)


class Advice(Word):
    """The advice that follows from the ends of a mismatch with the switch unset and set."""

    NONE = "", "nothing is wrong"
    SET_SWITCH = f"set {SWITCH}=1", "at run time: the check then refuses the inputs"
    NOT_CHECKED = "nothing checks it", "the end is no better with the check of inputs: check it before the call"
    NOT_TRIED = "the check was not tried", "the calls were made without the switch alone"
    STRICTER = "the check refuses what is right", "without the switch the outputs are those of eager"
    WRONG_PACKAGE = (
        "the package is wrong",
        "its own example inputs do not give eager's outputs: conformance triage --aoti",
    )


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension of an input. ``symbol``: its name if it is dynamic, within ``low`` and ``high`` (None: no bound)."""

    size: int
    symbol: str = ""
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The description of a call's tensor. Strides and offset are in elements. ``source``: the index of its example."""

    source: int
    size: Shape
    stride: Shape
    offset: int
    dtype: str
    device: str


@dataclass(frozen=True, slots=True)
class Input:
    """An example input that the model was compiled with. ``uniform``: whether all its values are equal."""

    name: str
    given: Given
    dimensions: tuple[Dimension, ...]
    itemsize: int
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the compiled model. ``subject``: the input that differs, or "".

    ``changed``: the indices of the inputs that differ. ``load_device``: the device to load the model for; "" for the
    device that it was compiled for.
    """

    axis: Axis
    what: str
    inputs: tuple[Given, ...]
    subject: str = ""
    changed: tuple[int, ...] = ()
    load_device: str = ""


@dataclass(frozen=True, slots=True)
class Observed:
    """The observation of a call. ``phase``: the last one of its process: prepare, eager, load, call, compare or done.

    ``died``: the signal's name, the exit code, or "timeout". ``difference``: the first difference from eager.
    ``printed``: the output of the process, to which torch before 2.13 writes the message of the check.
    """

    phase: str
    died: str = ""
    eager_raised: str = ""
    raised: str = ""
    difference: str = ""
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A call with the switch unset or set (``checked``), and how it ended."""

    call: Call
    checked: bool
    api: Api
    end: End
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A mismatch with its ends. An end is None if the call was not made."""

    axis: Axis
    subject: str
    what: str
    unset: End | None
    set: End | None
    advice: Advice
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Differing:
    """A call whose ends by the deprecated API and by the current API differ."""

    axis: Axis
    subject: str
    what: str
    checked: bool
    current: End
    deprecated: End


@dataclass(frozen=True, slots=True)
class Report:
    """A model compiled for a device, with the ends of all calls and the findings."""

    model: str
    torch: str
    device: str
    inputs: tuple[Input, ...]
    ended: tuple[Ended, ...]
    findings: tuple[Finding, ...]
    deprecated: tuple[Differing, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def failing(self) -> bool:
        """Whether a call ended in silent garbage or a crash, or could not be judged."""
        return any(e.end.is_finding or e.end is End.NOT_JUDGED for e in self.ended)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary for JSON, which stores a word as its text."""
        return asdict(self)


def input_from(facts: Mapping[str, Any]) -> Input:
    """Return an input from its JSON object."""
    dimensions = tuple(Dimension(**d) for d in facts["dimensions"])
    return Input(facts["name"], given_from(facts["given"]), dimensions, facts["itemsize"], facts["uniform"])


def given_from(facts: Mapping[str, Any]) -> Given:
    """Return a tensor's description from its JSON object."""
    return Given(**{**facts, "size": tuple(facts["size"]), "stride": tuple(facts["stride"])})
