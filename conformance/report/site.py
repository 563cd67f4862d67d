"""The site as files, written to a scratch directory that then replaces an earlier report, and only a report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from conformance.report.model import Site
from conformance.support.whole_directory import scratch_beside

MARK = "report.json"  # marks a directory as a report, and lists its files
_FORMAT = "op-conformance report"
_SCRIPTS = (
    "base", "data", "draw", "lists", "overview", "map", "cells", "cell", "causes", "bisect", "coverage", "kill_rate",
    "speed", "flaky", "main",
)  # fmt: skip
_ASSETS = ("index.html", "report.css", *(f"{name}.js" for name in _SCRIPTS))


class SiteError(ValueError):
    """The site cannot be written to the directory. The message is one line, and names the directory."""


def write(site: Site, directory: Path) -> Path:
    """Write the site, in place of an earlier report. Return the path of its page. Raises SiteError."""
    check(directory)
    target = directory.resolve()
    try:
        with scratch_beside(target) as scratch:
            names = [_put(scratch, name, data) for name, data in files(site)]
            mark = {"format": _FORMAT, "files": [*names, MARK]}
            _put(scratch, MARK, json.dumps(mark, indent=1).encode() + b"\n")
            _swap(scratch, target)
    except OSError as e:
        raise SiteError(f"{directory}: cannot be written: {e.strerror or e}") from e
    return directory / "index.html"


def check(directory: Path) -> None:
    """Raise SiteError unless the directory does not exist, is empty, or contains only a report."""
    if not directory.exists() and not directory.is_symlink():
        return
    if not directory.is_dir():
        raise SiteError(f"{directory}: is a file; expected a directory, or a name that is free")
    there = {
        str(file.relative_to(directory)) for file in directory.rglob("*") if not file.is_dir() or file.is_symlink()
    }
    foreign = sorted(there - _own(directory / MARK))
    if foreign:
        raise SiteError(f"{directory}: holds {foreign[0]}, which no report has written; nothing was changed")


def files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of every file. The rows of one lane are in memory at a time."""
    yield "data/site.js", script("site", site.main)
    for name, part in site.parts():
        yield f"data/{name}.js", script(name, part)
    assets = resources.files("conformance.report") / "assets"
    for name in _ASSETS:
        yield name, (assets / name).read_bytes()


def script(name: str, data: Any) -> bytes:
    """Return a script that passes data to the page. Texts are escaped, so that they cannot end the script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f"report.take({json.dumps(name)},{text});\n".encode("utf-8", "backslashreplace")


def _own(mark: Path) -> set[str]:
    """Return the files of the report that ``mark`` belongs to, none if there is no report."""
    try:
        told = json.loads(mark.read_text(encoding="utf-8"))
        return set(told["files"]) if told["format"] == _FORMAT else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _put(directory: Path, name: str, data: bytes) -> str:
    file = directory / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return name


def _swap(scratch: Path, target: Path) -> None:
    """Replace the old report by the new one."""
    if not target.exists():
        scratch.rename(target)
        return
    old = scratch.with_name(f"{scratch.name}.old")
    shutil.rmtree(old, ignore_errors=True)  # left by a killed process, after which the target was written again
    target.rename(old)
    try:
        scratch.rename(target)
    except BaseException:  # also Ctrl-C
        old.rename(target)
        raise
    shutil.rmtree(old)
