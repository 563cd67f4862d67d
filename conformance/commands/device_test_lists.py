"""`expect export` and `expect import`: known failures as lists for PyTorch's own device-type tests, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance.commands.edge import Mistake, expected_option, mistakes, need_directory, results_option
from conformance.results import expectations, expected_files, store
from conformance.results.expectations import Verdict
from conformance.support.toml_table import TomlError
from conformance.support.wording import counted

if TYPE_CHECKING:
    from conformance.device_tests.mapping import OpInfoMap


@click.command("export")
@click.argument("run")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--known", "known_alone", is_flag=True, help="Only failures that the known failures expect.")
@click.option("--allowlist", is_flag=True, help="Also list the ops that the backend serves, as op_allowlist.")
@results_option
@expected_option
def expect_export(
    run: str, out: Path, known_alone: bool, allowlist: bool, results: Path, expected: Path | None
) -> None:
    """Write the failing cells of RUN to OUT, for PyTorch's own device-type tests.

    OUT is a Python module (.py) whose apply() makes these tests leave the ops out, or the list alone as JSON (.json).
    Cells that these tests do not try are in the file by the reason, and counted here.
    """
    from conformance.device_tests import exporting, writing
    from conformance.device_tests.model import DeviceTestList

    if out.suffix not in (".py", ".json") or (out.suffix == ".py" and not out.stem.isidentifier()):
        raise Mistake(f"{out}: expected the name of a Python module, such as known_failures.py, or of a .json file")
    need_directory("OUT", out)
    with mistakes(store.StoreError, TomlError, OSError):
        read = store.read(store.find(results, run))
        told = read.manifest
        known = expectations.load(expected_files.of_results(expected, told))
    if allowlist and not told.every_cell:
        raise Mistake(f"{run}: some cells were not selected, so the ops that the backend serves are not known")
    judged = [(o, expectations.judge(o, known, told.lane)) for o in read.observations if o.status.is_failure]
    failing = [(o, v) for o, v in judged if not known_alone or v.verdict is Verdict.EXPECTED_FAILURE]
    reasons = {o.cell: v.rule.reason if v.rule else f"{o.kind}: {o.cell}" for o, v in failing}
    ops = _opinfo_map()
    entries, unmapped = exporting.entries([o for o, _ in failing], ops, lambda o: reasons[o.cell])
    allowed = exporting.served(read.observations, ops) if allowlist else None
    found = DeviceTestList(entries, allowed, unmapped, told.backend, told.run or told.lane, told.torch)
    with mistakes(OSError):
        text = writing.as_json(found) if out.suffix == ".json" else writing.as_python(found, out.stem)
        out.write_text(text, encoding="utf-8")
    left_out = sum(map(len, unmapped.values()))
    click.echo(
        f"{out}: {counted(len({e.op for e in entries}), 'op')} of {counted(len(failing) - left_out, 'failing cell')}"
    )
    _print_left_out("not listed", "cell", unmapped)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("run")
@results_option
@expected_option
def expect_import(file: Path, run: str, results: Path, expected: Path | None) -> None:
    """Make known failures of the cells of RUN that fail and that FILE lists for PyTorch's device-type tests.

    FILE is one that `expect export` wrote, or Python with op_overrides, op_allowlist, test_exclusions or skipOps. It is
    read and never run. What cannot be read, ops that this torch does not have, and entries without a failing cell are
    listed; they become no rule.
    """
    from conformance.device_tests import reading
    from conformance.device_tests.matching import Listed
    from conformance.device_tests.model import ListError

    with mistakes(store.StoreError, TomlError, ListError, OSError):
        found = reading.read(file)
        read = store.read(store.find(results, run))
        to = expected_files.to_write(expected, read.manifest)
        old = expectations.load(to)
    told, listed = read.manifest, Listed(found, _opinfo_map())
    new = expectations.add(old, read.observations, told.lane, read.complete, listed.reason)
    with mistakes(OSError):
        expectations.save(to, new, told.backend)
    click.echo(f"{to}: {counted(len(new), 'rule')}: {len(old)} kept, {len(new) - len(old)} new")
    _print_left_out("not read", "place", found.unmapped)
    for line in listed.unknown():
        click.echo(f"not imported: {line}")
    unused = listed.unused()
    if unused:
        click.echo(f"without a failing cell in {run}: {counted(len(unused), 'item')} of the list")
        _print_indented(map(str, unused))


def _print_left_out(what: str, noun: str, unmapped: Mapping[str, Collection[str]]) -> None:
    for reason, names in unmapped.items():
        click.echo(f"{what}: {counted(len(names), noun)}: {reason}")
        _print_indented(names)


def _print_indented(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  {line}")


def _opinfo_map() -> OpInfoMap:
    """Return the map for the installed torch. Raises Mistake if torch cannot load its own tests."""
    from conformance.corpus.reader import CorpusError
    from conformance.device_tests import installed

    try:
        with mistakes(CorpusError):
            return installed.opinfo_map()
    except ImportError as e:
        raise Mistake(f"torch's own table of ops cannot be loaded: {e}; torch.testing._internal needs {e.name}") from e
