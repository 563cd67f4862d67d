"""The process that runs a program with one backend of ``torch.compile``, compares each graph, and writes the result.

``python -m conformance.triage.compiled.worker DIRECTORY -- PROGRAM...``. The directory holds the request.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from conformance.calls.program import run_program
from conformance.support import shared_page
from conformance.triage.compiled.model import OWN, PLAIN, Kind, Wrong

if TYPE_CHECKING:
    from conformance.triage.compiled.checking import Checks, Graph

REQUEST, PAGE, FOUND, GRAPH, RESULTS, CODE = (
    "request.json", "page", "found.json", "graph.pt", "results.pt", "generated.py",
)  # fmt: skip
_LAYOUT, _LONGEST = "<ii16s", 16


def read_page(directory: Path) -> tuple[int, int, str]:
    """Return graph, call and phase of the step that ran last, (-1, -1, "") outside of graphs."""
    try:
        graph, call, phase = shared_page.at(directory / PAGE, _LAYOUT).read()
    except (OSError, ValueError):
        return -1, -1, ""
    return int(graph), int(call), phase.rstrip(b"\0").decode()


class _Ends:
    """The files that this process writes for the process that started it."""

    def __init__(self, directory: Path, leave_bisection: Callable[[], None]) -> None:
        from conformance.triage.compiled.recording import Recording

        self._directory = directory
        self._leave_bisection = leave_bisection
        self.recording = Recording()
        self.code: list[str] = []  # the code that Inductor generated

    def keep(self, graph: Graph, args: Sequence[Any]) -> str:
        """Store a graph with the arguments of a call. Return why it cannot be stored, "" if it is stored."""
        from conformance.triage.compiled import dump

        modes = dump.modes_now(args)
        content = dump.Dump(graph.reference, dump.concrete(args), graph.backend, graph.options, modes)
        return dump.save(self._directory / GRAPH, content)

    def leave(self, checks: Checks, **facts: Any) -> NoReturn:
        """Store the facts, and end the process."""
        facts |= {"graphs": len(checks.graphs), "calls": checks.calls, "names": list(checks.names)}
        facts["unjudged"] = list(checks.unjudged.items())
        self._leave_bisection()
        (self._directory / CODE).write_text("\n".join(self.code), encoding="utf-8")
        self.recording.save(self._directory / RESULTS)
        (self._directory / FOUND).write_text(json.dumps(facts), encoding="utf-8")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # later failures of the program follow from the first


def main(arguments: list[str]) -> None:
    """Run the program. Does not return."""
    where, _, *program = arguments
    directory = Path(where)
    request = json.loads((directory / REQUEST).read_text(encoding="utf-8"))
    faulthandler.enable()
    import torch

    from conformance.torch_versions import compiler_tools as tools
    from conformance.triage.compiled.checking import Checks, wrong_of

    page = shared_page.create(directory / PAGE, _LAYOUT, -1, -1, b"")
    ends = _Ends(directory, tools.join(Path(request["bisection"])) if request["bisection"] else lambda: None)

    def due(graph: Graph, args: Sequence[Any]) -> None:
        if [graph.index, graph.calls - 1] == request["keep"]:
            ends.keep(graph, args)

    def told(phase: str, graph: int, call: int) -> None:
        page.write(graph, call, phase.encode()[:_LONGEST])

    def stop(wrong: Wrong, graph: Graph | None, args: Sequence[Any]) -> None:
        lost = ends.keep(graph, args) if graph else ""
        ends.leave(checks, wrong=dataclasses.asdict(wrong), lost=lost)

    checks = Checks(request["backend"], stop, told, due)
    _seed(torch)
    ends.recording.install()
    if request["backend"] != PLAIN:
        tools.change_backends(checks.backend)
    if request["backend"] == OWN:
        tools.keep_generated_code(ends.code)
    ended = None
    try:
        run_program(program)
    except SystemExit as e:
        ended = _exited(e.code)
    except BaseException as e:  # noqa: BLE001  # the report says what the program raised
        ended = wrong_of(e)
    ends.leave(checks, ended=dataclasses.asdict(ended) if ended else None)


def _exited(code: Any) -> Wrong | None:
    """Return how ``sys.exit(code)`` ends a program, None for success. Other objects than numbers are error messages."""
    number = code if isinstance(code, int) or code is None else 1
    return Wrong(Kind.EXITED, f"exit code {number}", str(number)) if number else None


def _seed(torch: Any) -> None:
    """Make the draws of a program that sets no seed equal in all its runs."""
    random.seed(0)
    torch.manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


if __name__ == "__main__":
    main(sys.argv[1:])
