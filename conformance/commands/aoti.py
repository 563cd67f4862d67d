"""`aoti`: calls of packaged models with inputs that they were not compiled for."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.commands.edge import Mistake, mistakes, tell, timeout_option
from conformance.support.exit_codes import Exit

if TYPE_CHECKING:
    from conformance.aoti.model import Api, Report

_SWITCHES = {"unset": (False,), "set": (True,), "both": (False, True)}


@click.command("aoti")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option(
    "--backend", default="torch:cpu", show_default=True, metavar="NAME",
    help="Whose device the models are compiled for: an installed backend, a shipped adapter, or module:device.",
)  # fmt: skip
@click.option("--other", default="", metavar="NAME", help="A backend on whose device inputs are put, as a mismatch.")
@click.option(
    "--switch", type=click.Choice(list(_SWITCHES)), default="both", show_default=True,
    help="How AOTI_RUNTIME_CHECK_INPUTS is set in the calls.",
)  # fmt: skip
@click.option(
    "--api", type=click.Choice(["current", "deprecated", "both"]), default="both", show_default=True,
    help="aoti_compile_and_package, torch._export.aot_compile, or both where this torch has it.",
)  # fmt: skip
@timeout_option(60.0, "a call")
@click.option("--json", "as_json", is_flag=True, help="Print records in place of tables.")
@click.option(
    "--keep", type=click.Path(file_okay=False, path_type=Path),
    help="Keep packages, compiler output and the records of all calls in this directory.",
)  # fmt: skip
def aoti_(
    models: tuple[str, ...], backend: str, other: str, switch: str, api: str, timeout: float, as_json: bool,
    keep: Path | None,
) -> None:  # fmt: skip
    """Package each MODEL with AOTInductor, and call it with inputs that differ from those that it was compiled for.

    MODEL is file.py, file.py:function or module:function: a function (by default `model`) without arguments that
    returns (module, tuple of example inputs, dynamic shapes of torch.export or None). Without MODEL, two small models.
    Each call is compared with eager on the same inputs, and ends as right, clear error, other error, silent garbage,
    crash or not judged. The exit code is 1 if a call ends in one of the last three ways.
    """
    from conformance import backends
    from conformance.aoti import builtin, session, text
    from conformance.aoti.spec import SpecError, parts

    reports = []
    with mistakes(SpecError):
        for model in models:
            parts(model)  # before any of them is compiled
    with mistakes(backends.BackendNotFound, session.CompileError, SpecError, OSError), _directory(keep) as directory:
        found, another = backends.find(backend), backends.find(other) if other else None
        for number, model in enumerate(models or builtin.MODELS):
            place = directory / f"{number}"
            apis, switches = _apis(api), _SWITCHES[switch]
            job = session.Job(model, found, place, another, switches, apis, timeout, tell=tell)
            reports.append(session.run(job))
            (place / "report.json").write_text(json.dumps(reports[-1].as_dict(), indent=1), encoding="utf-8")
    if as_json:
        click.echo(json.dumps([text.as_facts(r) for r in reports], indent=1))
    else:
        _print(reports)
    sys.exit(Exit.CELLS_FAILED if any(r.failing for r in reports) else Exit.OK)


def _apis(wanted: str) -> tuple[Api, ...]:
    """Return the APIs to try. Raises SpecError if the only one is gone from this torch."""
    from conformance.aoti.model import Api
    from conformance.aoti.spec import SpecError
    from conformance.torch_versions import compilers

    apis = tuple(Api) if wanted == "both" else (Api(wanted),)
    if Api.DEPRECATED in apis and not compilers.has_deprecated_aoti():
        if apis == (Api.DEPRECATED,):
            raise SpecError("this torch has no torch._export.aot_compile and aot_load any more: use --api current")
        return (Api.CURRENT,)
    return apis


def _print(reports: list[Report]) -> None:
    from rich.console import Console

    from conformance.aoti import text

    console = Console(highlight=False, soft_wrap=False)
    for report in reports:
        text.show(report, console)


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """Yield the directory of --keep, or else a temporary directory.

    The temporary directory is deleted afterwards, unless the compilation failed and the error names a file in it.
    """
    if keep is not None:
        yield keep.resolve()
        return
    from conformance.aoti.session import CompileError

    directory = Path(tempfile.mkdtemp(prefix="conformance-aoti-"))
    log = None
    try:
        yield directory
    except CompileError as e:
        log = e.log
        raise
    finally:
        if log is None:
            shutil.rmtree(directory, ignore_errors=True)


PACKAGE, INPUTS = (".pt2",), (".pt", ".pth")


def triage_package(given: Sequence[str], backend: str, timeout: float, out: Path) -> Exit:
    """Find the first wrong kernel of a package, for ``triage --aoti``; write and print the result.

    ``given``: a model, and optionally a package (.pt2) and a file of inputs (.pt or .pth). Raises Mistake.
    """
    from conformance import backends
    from conformance.aoti import session, text, triage
    from conformance.aoti.kernels import Conclusion
    from conformance.aoti.spec import SpecError, parts

    packages, files = ([Path(g) for g in given if g.endswith(ends)] for ends in (PACKAGE, INPUTS))
    models = [g for g in given if not g.endswith((*PACKAGE, *INPUTS))]
    if len(models) != 1 or len(packages) > 1 or len(files) > 1:
        raise Mistake(
            "expected: triage --aoti [PACKAGE.pt2] MODEL [INPUTS.pt]; MODEL is file.py, file.py:function or "
            "module:function, as of `conformance aoti`: a package alone cannot be compiled again with the value printer"
        )
    for file in (*packages, *files):
        if not file.is_file():
            raise Mistake(f"no file {file}")
    with mistakes(backends.BackendNotFound, session.CompileError, SpecError, OSError):
        parts(models[0])
        found = backends.find(backend or "torch:cpu")
        places = next(iter(files), None), next(iter(packages), None)
        result = triage.triage(triage.TriageJob(models[0], found, out.resolve(), *places, timeout))
        (out / "aoti.json").write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")
    click.echo("\n".join(text.triaged(result)))
    click.echo(f"\nwritten to {out}/: aoti.json, and the tensors that the kernels were launched with")
    return Exit.OK if result.conclusion is Conclusion.NOTHING else Exit.CELLS_FAILED
