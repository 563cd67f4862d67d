"""The causes of a run's failures as text for its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.records import ALONE
from conformance.results.causes import FALLBACK, Cause, Contrast, Manner
from conformance.support import command_lines
from conformance.support.wording import counted, some

SHOWN = 10  # causes


def text(found: Sequence[Cause], backend: str) -> str:
    """Return text for the first causes: each with its contrasts, an example, and commands for the example.

    Return "" if there is no cause.
    """
    if not found:
        return ""
    cells = sum(len(cause.cells) for cause in found)
    lines = [f"causes of {counted(cells, 'failing cell')}: {to_mend(found)}"]
    for cause in found[:SHOWN]:
        lines.append(f"  {cause.kernel}: {explained(cause)} ({some(cause.overloads)})")
        lines += [f"    {line}" for line in _told(cause, backend)]
    return "\n".join([*lines, *([f"  ... and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])])


def to_mend(found: Sequence[Cause]) -> str:
    """Return the number of things to mend, e.g. ``5 kernels, the fallback (in 2 ways), 1 program by itself``.

    The fallback counts once, even if its cells fail in several ways.
    """
    of_fallback = [cause for cause in found if cause.kernel == FALLBACK]
    programs = sum(cause.is_program for cause in found)
    kernels = len({cause.kernel for cause in found if cause.kernel != FALLBACK and not cause.is_program})
    ways = len({cause.manner.kind for cause in of_fallback})
    parts = [
        counted(kernels, "kernel") if kernels else "",
        FALLBACK + (f" (in {ways} ways)" if ways > 1 else "") if of_fallback else "",
        f"{counted(programs, 'program')} by {'itself' if programs == 1 else 'themselves'}" if programs else "",
    ]
    return ", ".join(filter(None, parts))


def name(cause: Cause) -> str:
    """Return the name of a cause, e.g. ``resize_``. The fallback's name includes the way in which its cells fail."""
    if cause.kernel != FALLBACK:
        return cause.kernel
    programs = {cell for cell in cause.cells if cell.is_scenario and not cause.manner.ends_the_call}
    of = [manner(cause.manner), *(sorted(cell.overload for cell in programs))]
    return f"{FALLBACK} ({', '.join(filter(None, of))})" if any(of) else FALLBACK


def explained(cause: Cause) -> str:
    """Return the numbers that a cause explains, e.g. ``40 cells of 12 overloads``."""
    return f"{counted(len(cause.cells), 'cell')} of {counted(len(cause.overloads), 'overload')}"


def contrast(found: Contrast) -> str:
    """Return a contrast as a sentence, e.g. ``layout: fails in step2; all pass in contiguous``."""
    return f"{found.axis}: fails in {some(found.failing)}; all pass in {some(found.passing)}"


def manner(how: Manner) -> str:
    """Return how cells fail, e.g. ``SIGSEGV``, ``RuntimeError: no kernel`` or ``stride``; "" if in several ways."""
    return how.signal or how.check or (f"{how.error}: {how.message}" if how.error else "")


def in_common(cause: Cause) -> str:
    """Return how all cells of a cause fail if this says something about the cause, else ""."""
    telling = cause.manner.ends_the_call or cause.kernel == FALLBACK
    return manner(cause.manner) if telling else ""


def commands(cause: Cause, backend: str) -> dict[str, str]:
    """Return the commands for the example of a cause, by their purpose; none if the example is not a case.

    An example that does not fail alone in each run has no triage command, because triage needs a program that fails.
    """
    if "#" not in cause.example:
        return {}
    setting = cause.setting
    made = {"repeat": command_lines.repeat(cause.example, backend, setting.after, setting.runs)}
    return made if setting != ALONE else {**made, "triage": command_lines.triage(cause.example, backend)}


def _told(cause: Cause, backend: str) -> Iterator[str]:
    # The list of failing overloads, below the causes, has the checks of each operator.
    if how := in_common(cause):
        yield f"all fail by: {how}"
    yield from map(contrast, cause.contrasts)
    yield f"example: {cause.example}"
    for what, command in commands(cause, backend).items():
        yield f"{what}: {command}"
