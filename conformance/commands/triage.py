"""`triage`: finds the first op, kernel or stage of the compiler that goes wrong in a program or a failing case."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.commands.edge import Mistake, backend_option, last_known, mistakes, tell, timeout_option
from conformance.support import options
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError
from conformance.vocabulary import CASE_ID, DEFAULT_SEED

if TYPE_CHECKING:
    from conformance.backends import Capabilities


@click.command("triage", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="CASE | -- python SCRIPT.py ...")
@backend_option
@click.option(
    "--aoti", is_flag=True, help="Find the first kernel of an AOTInductor package whose output differs from eager. The "
    "arguments are `[PACKAGE.pt2] MODEL [INPUTS.pt]`: MODEL as for `aoti`, INPUTS a list of tensors from torch.save."
)  # fmt: skip
@click.option(
    "--compiled", is_flag=True, help="Find the first stage of torch.compile in which a program goes wrong: Dynamo, "
    "AOTAutograd, a decomposition, Inductor's lowering or the generated kernel."
)  # fmt: skip
@click.option(
    "--matrix",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Default: matrices/<backend>.toml, if it exists.",
)
@click.option("--lanes", default="", metavar="A,B", help="Only these lanes, besides the program's own environment.")
@click.option("--python", multiple=True, metavar="PATH", help="An interpreter with another torch; may be repeated.")
@timeout_option(300.0, "a run")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("triage"),
    show_default=True,
    help="The directory of the report, the script and the files of the runs.",
)
def triage_(command: tuple[str, ...], backend: str, timeout: float, out: Path, **given: Any) -> None:
    """Find the first op of a program or a failing CASE that goes wrong on the device, and why; write a script.

    The exit code is 1 if something goes wrong on the device, and 2 if the program itself fails or calls nothing there.
    """
    if given["compiled"]:
        from conformance.commands.compiled import triage_compiled

        _refuse("--compiled", given, "aoti", "matrix", "lanes", "python")
        sys.exit(triage_compiled(command, backend, timeout, out))
    if given["aoti"]:
        from conformance.commands.aoti import triage_package

        _refuse("--aoti", given, "matrix", "lanes", "python")
        sys.exit(triage_package(command, backend, timeout, out))
    sys.exit(_triage_ops(command, backend, timeout, out, given))


def _triage_ops(command: Sequence[str], backend: str, timeout: float, out: Path, given: Mapping[str, Any]) -> Exit:
    """Find the first op that goes wrong, and write and print the evidence, also after Ctrl-C. Raises Mistake."""
    from conformance import backends
    from conformance.corpus.reader import CorpusError
    from conformance.triage import report, run
    from conformance.triage.job import Job

    with mistakes(backends.BackendNotFound, CorpusError, LookupError, TomlError, ValueError, OSError):
        name = backend or backends.default()
        found = backends.find(name)
        lanes = _lanes(found, given["matrix"], given["lanes"])
        for python in given["python"]:
            if shutil.which(python) is None:
                raise Mistake(f"--python {python}: no such program; expected a Python interpreter")
        python, program = run.program_of(_command(command, found, out))
        out.mkdir(parents=True, exist_ok=True)
        job = Job(found, name, program, python, lanes, given["python"], out.resolve() / "runs", timeout, tell)
        evidence, script = last_known(run.triage(job))
        (out / "report.md").write_text(report.markdown(evidence, script), encoding="utf-8")
        (out / "report.json").write_text(report.as_json(evidence, script), encoding="utf-8")
        if script:
            (out / "script.py").write_text(script, encoding="utf-8")
    click.echo(report.text(evidence, script))
    click.echo(f"\nwritten to {out}/: report.md, report.json" + (", script.py" if script else ""))
    if not evidence.complete:
        return Exit.INTERRUPTED
    if evidence.first:
        return Exit.CELLS_FAILED
    return Exit.OK if evidence.sound else Exit.INTERRUPTED


def _lanes(backend: Capabilities, file: Path | None, chosen: str) -> dict[str, dict[str, str]]:
    """Return the variables of the lanes to run in, by name. Raises Mistake, OptionError or TomlError.

    ``file``, ``chosen``: the values of --matrix and --lanes.
    """
    from conformance.lanes import matrix
    from conformance.triage import lanes

    if file and (of := matrix.load(file).backend) != backend.name:
        raise Mistake(f"--matrix {file}: is the matrix of {of!r}; expected that of {backend.name!r}")
    every = lanes.environments(backend.name, file or Path(f"matrices/{backend.name}.toml"), backend.environments())
    names = options.names("--lanes", "lane", chosen or None, every)
    return {name: every[name] for name in every if names is None or name in names or name in lanes.ALWAYS}


def _command(given: Sequence[str], backend: Capabilities, out: Path) -> Sequence[str]:
    """Return the command of a program. For a CASE, first write the program."""
    if len(given) == 1 and not given[0].endswith(".py"):
        if "::" not in given[0]:
            raise Mistake(f"expected a CASE such as {CASE_ID}, or -- python script.py ARGUMENTS; got: {given[0]}")
        return [str(_case_script(given[0], backend, out))]
    return given


def _refuse(kind: str, given: Mapping[str, Any], *options_: str) -> None:
    """Raise Mistake for an option that a kind of triage does not take."""
    for option in options_:
        if given[option]:
            raise Mistake(f"triage {kind} takes no --{option}")


def _case_script(case: str, backend: Capabilities, out: Path) -> Path:
    """Write the script of a case. Return its path."""
    from conformance.commands.case_script import case_script
    from conformance.plan.plan import Plan
    from conformance.plan.selection import Selection

    script = case_script(Plan(backend, Selection(), DEFAULT_SEED), case, contained=False)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "case.py"
    path.write_text(script, encoding="utf-8")
    return path
