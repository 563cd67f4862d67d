"""The file of known failures, for a run and for commands that read a run.

A directory stands for the file ``<backend>.toml`` in it. If this file is absent, there are no known failures.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.support.toml_table import Table, TomlError

if TYPE_CHECKING:
    from conformance.results.store.manifest import Manifest

DEFAULT = Path("matrices/expected")


def of_run(option: str | None, adapter: object, backend: str, directories: Sequence[Path]) -> tuple[Path, bool]:
    """Return the file of a run, and whether it was named rather than found at its default place.

    The first named path is taken: ``option``, the path given by --expected; ``adapter``, the path that the backend's
    adapter gives; the path in a ``pyproject.toml`` of one of the ``directories``. None and "" name no path. If no path
    is named, the file is at the default place in the first directory. Raises TomlError, which says where a path was
    named, if nothing exists there.
    """
    if option:
        return _existing(Path(option), backend, "--expected"), True
    if adapter:
        return _existing(_absolute(adapter), backend, "the backend's adapter, expected"), True
    if named := _in_pyproject(directories):
        path, where = named
        return _existing(path, backend, where), True
    return directories[0] / DEFAULT / f"{backend}.toml", False


def of_results(option: Path | None, manifest: Manifest, directory: Path = Path()) -> Path:
    """Return the file by which a run that has ended is judged, from its manifest and the current ``directory``.

    That is ``option``, else the file that the run took, else the file that a run started in ``directory`` would take.
    Raises TomlError if nothing exists at a path.
    """
    if option:
        return _existing(option, manifest.backend, "--expected")
    return _taken(manifest, directory) or of_run(None, None, manifest.backend, [directory])[0]


def to_write(option: Path | None, manifest: Manifest, directory: Path = Path()) -> Path:
    """Return the file to which the known failures of a run are written. Files given by ``option`` may be absent."""
    if option:
        return _file(option, manifest.backend)
    return of_results(None, manifest, directory)


def recorded(file: Path, directory: Path) -> str:
    """Return the path of the file for a run's manifest: relative to the run's ``directory`` if it is below it."""
    file, directory = file.absolute(), directory.absolute()
    return str(file.relative_to(directory) if file.is_relative_to(directory) else file)


def _taken(manifest: Manifest, directory: Path) -> Path | None:
    """Return the file that a run took, by its manifest; None if no file was named.

    A missing file means no known failures. Raises TomlError if its directory is missing, as on another machine.
    """
    if not manifest.expected:
        return None
    file = directory / manifest.expected
    if not file.parent.is_dir():
        run = manifest.run or manifest.lane
        raise TomlError(f"{file}: the known failures of {run} are missing; give --expected PATH")
    return file


def _in_pyproject(directories: Sequence[Path]) -> tuple[Path, str] | None:
    """Return the first path in a ``pyproject.toml``, and the key that names it. Raises TomlError."""
    for directory in dict.fromkeys(directories):
        file = directory / "pyproject.toml"
        if not file.is_file():
            continue
        table = Table.load(file).table("tool").table("conformance")
        named = table.take("expected", str, "")
        table.done()
        if named:
            return directory / named, f"{file}: tool.conformance.expected"
    return None


def _absolute(given: object) -> Path:
    if not isinstance(given, (str, os.PathLike)):
        raise TomlError(f"the backend's adapter, expected: expected a path, got {type(given).__name__} {given!r}")
    path = Path(given)
    if not path.is_absolute():
        raise TomlError(
            f"the backend's adapter, expected: {str(path)!r} is relative; expected an absolute path, for example "
            "Path(__file__).with_name('expected.toml')"
        )
    return path


def _existing(path: Path, backend: str, named_by: str) -> Path:
    """Return the file at ``path``. Raises TomlError if there is neither a file nor a directory."""
    if not path.exists():
        raise TomlError(f"{named_by}: no file {path}; expected known failures, in a file that may be empty")
    return _file(path, backend)


def _file(path: Path, backend: str) -> Path:
    return path / f"{backend}.toml" if path.is_dir() else path
