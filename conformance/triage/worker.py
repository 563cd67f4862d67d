"""The process that runs a program with every op compared, and writes the result to a directory.

``python -m conformance.triage.worker BACKEND DIRECTORY KEEP -- PROGRAM...``. The page in the directory names the
running op, in case this process dies. KEEP is the index of an op to record with the ops before it, or -1.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from conformance.calls.program import run_program
from conformance.support import shared_page
from conformance.support.lines import error_line
from conformance.support.whole_file import write_text
from conformance.triage.evidence import Found

if TYPE_CHECKING:
    from conformance.backends import Capabilities
    from conformance.calls.model import Call

PAGE, FOUND, CALL, SEQUENCE = "page", "found.json", "call.safetensors", "sequence.safetensors"
NOT_COMPILED = "TORCHDYNAMO_DISABLE"  # set for programs that call torch.compile
_LAYOUT, _LONGEST = "<i96s", 96


def read_page(directory: Path) -> tuple[int, str]:
    """Return index and op of the call that ran last, (-1, "") before the first."""
    try:
        index, name = shared_page.at(directory / PAGE, _LAYOUT).read()
    except (OSError, ValueError):
        return -1, ""
    return int(index), name.rstrip(b"\0").decode()


class _Run:
    """The files that the run of a program writes to its directory, and the end of the run."""

    def __init__(self, backend: Capabilities, directory: Path, keep: int) -> None:
        """``keep``: the index of the op to record with the ops before it, or -1."""
        import torch

        from conformance.triage.history import History
        from conformance.triage.watch import Watch

        self._directory = directory
        self._keep = keep
        self._page = shared_page.create(directory / PAGE, _LAYOUT, -1, b"")
        self._history = History(torch.device(backend.device)) if keep >= 0 else None
        self.watch = Watch(backend, self._before, self._stop, self._history)

    def _before(self, index: int, op: str, call: Call | None) -> None:
        """Write the next op to the page. If this op is the one to keep, also record it with the ops before it."""
        from conformance.calls import file, sequence

        self._page.write(index, op.encode()[:_LONGEST])
        if self._history and index == self._keep and call is not None:
            file.save(self._directory / CALL, [call])
            sequence.save(self._directory / SEQUENCE, self._history.steps, self._history.gaps)

    def _stop(self, found: Found, call: Call | None) -> None:
        """Store the first failing op, and end the process."""
        from conformance.calls import file

        if call is not None:
            file.save(self._directory / CALL, [call])
        self.leave(found=dataclasses.asdict(found))

    def leave(self, **facts: Any) -> NoReturn:
        """Store the facts, and end the process."""
        facts |= {"ops": self.watch.ops, "unjudged": self.watch.unjudged}
        write_text(self._directory / FOUND, json.dumps(facts))  # whole, as this process may be killed
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # do not continue the program, whose later failures follow from the first


def main(arguments: list[str]) -> None:
    """Run the program. Does not return."""
    backend_name, where, keep, _, *program = arguments
    faulthandler.enable()

    from conformance import backends
    from conformance.torch_versions import compilers

    if os.environ.get(NOT_COMPILED):  # torch 2.8 cannot import its compiler while calls are watched
        compilers.load_decompositions()
    run = _Run(backends.find(backend_name), Path(where), int(keep))
    trouble = ""
    try:
        with run.watch:
            run_program(program)
    except SystemExit as e:
        trouble = f"the program ended with {e.code}" if e.code else ""
    except BaseException as e:  # noqa: BLE001  # the report says what the program raised
        traceback.print_exc()  # into the output of the run
        trouble = _raised(e)
    run.leave(trouble=trouble)


def _raised(error: BaseException) -> str:
    """Return the error of a program, and the line of the program that it comes from."""
    from conformance.triage.watch import place_of

    place = place_of(traceback.extract_tb(error.__traceback__))
    return f"the program raised {error_line(error)}" + (f", at {place}" if place else "")


if __name__ == "__main__":
    main(sys.argv[1:])
