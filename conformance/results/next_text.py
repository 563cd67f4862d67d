"""The next steps as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.results.next_steps import Action, Step
from conformance.results.unimplemented import most_first
from conformance.support import command_lines
from conformance.support.wording import amount, some

_DO = {
    Action.PRIMITIVE: "fix the primitive", Action.FIX: "fix", Action.IMPLEMENT: "implement",
    Action.NATIVE: "make native",
}  # fmt: skip
_INDENT = " " * 5


def table(found: Iterable[Step], backend: str) -> Iterator[str]:
    """Yield the lines of a table: a row for each step, and details below the row. Yield nothing without steps."""
    steps = list(found)
    if not steps:
        return
    names = [f"{_DO[step.action]} {step.what}" for step in steps]
    width = max(map(len, names))
    yield f"{_INDENT}{'':<{width}}  {'cells':>7}  {'calls':>7}  {'copied':>8}  models"
    for number, (step, name) in enumerate(zip(steps, names, strict=True), start=1):
        figures = f"{step.cells or '-':>7}  {step.calls or '-':>7}  {amount(step.copied or None, 'B'):>8}"
        yield f"{number:>3}. {name:<{width}}  {figures}  {_models(step)}".rstrip()
        yield from (f"{_INDENT}{line}" for line in _details(step, backend))


def _models(step: Step) -> str:
    return ", ".join(f"{name} {n}" for name, n in most_first(step.models).items())


def _details(step: Step, backend: str) -> Iterator[str]:
    if step.note:
        yield step.note
    if step.overloads and step.overloads != (step.what,):
        yield some(step.overloads)
    if "#" in step.example:
        yield f"repeat: {command_lines.repeat(step.example, backend)}"
