"""Runs a program in this process with every op compared, and writes the result to a directory.

``python -m conformance.triage.worker BACKEND DIRECTORY KEEP -- PROGRAM...``. The page in the directory names the
running op, in case that this process dies. KEEP is the index of an op to record with the ops before it, or -1.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import sys
from pathlib import Path
from typing import Any

from conformance.calls.program import run_program
from conformance.support import shared_page
from conformance.support.whole_file import write_text
from conformance.triage.evidence import Found

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


def main(arguments: list[str]) -> None:
    """Run the program. Does not return."""
    backend_name, where, keep, _, *program = arguments
    directory = Path(where)
    faulthandler.enable()
    import torch

    from conformance import backends
    from conformance.calls import file, sequence
    from conformance.calls.model import Call
    from conformance.torch_versions import compilers
    from conformance.triage.history import History
    from conformance.triage.watch import Watch

    if os.environ.get(NOT_COMPILED):  # torch 2.8 cannot import its compiler while calls are watched
        compilers.load_decompositions()
    backend = backends.find(backend_name)
    page = shared_page.create(directory / PAGE, _LAYOUT, -1, b"")
    history = History(torch.device(backend.device)) if int(keep) >= 0 else None

    def before(index: int, op: str, call: Call | None) -> None:
        page.write(index, op.encode()[:_LONGEST])
        if history and index == int(keep) and call is not None:
            file.save(directory / CALL, [call])
            sequence.save(directory / SEQUENCE, history.steps, history.gaps)

    def stop(found: Found, call: Call | None) -> None:
        if call is not None:
            file.save(directory / CALL, [call])
        leave(found=dataclasses.asdict(found))

    def leave(**facts: Any) -> None:
        facts |= {"ops": watch.ops, "unjudged": watch.unjudged}
        write_text(directory / FOUND, json.dumps(facts))  # whole, as this process may be killed
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # do not continue the program, whose later failures follow from the first

    watch = Watch(backend, before, stop, history)
    trouble = ""
    try:
        with watch:
            run_program(program)
    except SystemExit as e:
        trouble = f"the program ended with {e.code}" if e.code else ""
    except BaseException as e:  # noqa: BLE001  # the report says what the program raised
        trouble = f"the program raised {type(e).__name__}: {e}"
    leave(trouble=trouble)


if __name__ == "__main__":
    main(sys.argv[1:])
