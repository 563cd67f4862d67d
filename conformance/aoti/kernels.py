"""The launches of a package that was compiled with the value printer, and the first wrong launch. No torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from conformance.vocabulary import Word

# The printer is compiled into the package; the input check is read when the package runs.
PRINTER = "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER"
SAVE_FILES = "1"

_SAVED = re.compile(r"Saved tensor to (.*?((before|after)_launch_(.+)_(buf\d+|arg\d+(?:_\d+)?)_[a-z]\w*\.pt))\s*$")


class Conclusion(Word):
    """The conclusion of the triage of a package."""

    NOTHING = "nothing is wrong", "the outputs are those of eager"
    REFUSED = "the inputs are refused", "they are not those that the model was compiled for"
    KERNEL = "a kernel is wrong", "the first whose output differs from eager"
    CRASHED = "a kernel died", "it was launched and did not return"
    PASSES = "a pass is wrong", "the graph that Inductor compiles is not the model, op by op in eager"
    ELSEWHERE = "not located", "outputs differ, and no output of a kernel that could be compared"
    FAILED = "the run failed", "the package raised, or died outside of a kernel"


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor that the printer saved before or after a launch."""

    before: bool
    kernel: str
    buffer: str
    file: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of a kernel, with the tensors that were saved before and after it."""

    kernel: str
    before: tuple[Saved, ...]
    after: tuple[Saved, ...]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A launch after which a buffer differs from eager. ``node``: the FX node whose value the buffer holds."""

    index: int
    launch: Launch
    buffer: str
    node: str
    ops: tuple[str, ...]
    difference: str


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that a kernel was launched with, and its file. ``low`` and ``high``: its smallest and largest value."""

    buffer: str
    dtype: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    low: float | None
    high: float | None
    file: str


@dataclass(frozen=True, slots=True)
class Triaged:
    """The result of a triage.

    ``inputs`` are those of the wrong kernel. ``given``: how the package that the user gave ended, "" if none was given.
    ``launches`` and ``compared`` count the kernels that ran and the buffers that were compared.
    """

    conclusion: Conclusion
    detail: str = ""
    wrong: Wrong | None = None
    inputs: tuple[Value, ...] = ()
    launches: int = 0
    compared: int = 0
    given: str = ""


def launches(log: str) -> list[Launch]:
    """Return the launches in a process's output, in order."""
    found: list[Launch] = []
    for one in filter(None, map(_saved, log.splitlines())):
        last = found[-1] if found else None
        if last is None or last.kernel != one.kernel or (one.before and last.after):
            last = Launch(one.kernel, (), ())
            found.append(last)
        grown = (*last.before, one) if one.before else last.before
        found[-1] = Launch(one.kernel, grown, last.after if one.before else (*last.after, one))
    return found


def _saved(line: str) -> Saved | None:
    found = _SAVED.search(line)
    return Saved(found[3] == "before", found[4], found[5], found[1]) if found else None


def unfinished(found: list[Launch]) -> Launch | None:
    """Return the launch that did not return, if the process died in one."""
    return found[-1] if found and not found[-1].after else None


def first_wrong(
    found: Iterable[Launch],
    nodes: Mapping[str, tuple[str, tuple[str, ...]]],
    differs: Callable[[Saved, str], str | None],
) -> tuple[Wrong | None, int]:
    """Return the first launch after which a buffer differs from its node, with the number of buffers compared.

    ``differs`` returns the difference of a saved tensor from a node's value, "" if there is none, and None if the two
    cannot be compared. A buffer that was compared after an earlier launch is an input of the later ones.
    """
    seen: set[str] = set()
    for index, launch in enumerate(found):
        for saved in launch.after:
            if saved.buffer in seen or saved.buffer not in nodes:
                continue
            node, ops = nodes[saved.buffer]
            difference = differs(saved, node)
            if difference:
                return Wrong(index, launch, saved.buffer, node, ops, difference), len(seen) + 1
            if difference is not None:
                seen.add(saved.buffer)
    return None, len(seen)
