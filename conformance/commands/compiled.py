"""`triage --compiled`: the first stage of torch's compiler in which a program goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from conformance.commands.edge import last_known, mistakes, tell
from conformance.support.exit_codes import Exit


def triage_compiled(command: Sequence[str], backend: str, timeout: float, out: Path) -> Exit:
    """Find the stage, and write and print the evidence, also after Ctrl-C. Raises Mistake."""
    from conformance import backends
    from conformance.triage import run
    from conformance.triage.compiled import report, session, stages
    from conformance.triage.compiled.running import Job

    with mistakes(backends.BackendNotFound, ValueError, OSError):
        name, found = _backend(backend)
        python, program = run.program_of(command)
        directory = out.resolve() / "runs"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True, exist_ok=True)
        job = Job(program, python, directory, timeout, tell, found, name)
        evidence = last_known(session.triage(job))
        (out / "report.md").write_text(report.markdown(evidence), encoding="utf-8")
        (out / "report.json").write_text(report.as_json(evidence), encoding="utf-8")
    click.echo(report.text(evidence))
    files = [n for n in ("script.py", "arguments.pt", "generated.py") if evidence.script and (out / n).is_file()]
    click.echo(f"\nwritten to {out}/: {', '.join(['report.md', 'report.json', *files])}")
    if not evidence.complete:
        return Exit.INTERRUPTED
    if stages.stage(evidence):
        return Exit.CELLS_FAILED
    return Exit.OK if stages.sound(evidence) else Exit.INTERRUPTED


def _backend(name: str) -> tuple[str, Any]:
    """Return the name and the backend whose ops are compared with CPU.

    Without a name, it is the only installed backend, or ("", None) if there is not exactly one.
    """
    from conformance import backends

    if name:
        return name, backends.find(name)
    known = backends.offered()
    if len(known) != 1:
        why = "several backends are installed and none is given" if known else "no backend is installed"
        click.echo(f"{why}: the ops that run without torch.compile are not compared with CPU", err=True)
        return "", None
    return known[0], backends.find(known[0])
