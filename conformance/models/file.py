"""The files of recorded models, compressed JSON: one for each model, one of the operators below others. No torch."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from conformance.corpus import codec
from conformance.layouts import Placement, contiguous_stride
from conformance.models.model import Below, ModelCall, Recording

DATA = Path(__file__).parent / "data"
FORMAT = 1
_ENDING = ".json.gz"
_BELOW = "below"
_DTYPES = (("float32",),)  # the sets that codec refers to; a slot of a recorded call has its own dtype


class ModelsError(Exception):
    """A file of a recorded model is missing or damaged, or has another format."""


@cache
def names() -> tuple[str, ...]:
    """Return the names of the models that ship with the suite, sorted."""
    found = (path.name.removesuffix(_ENDING) for path in DATA.glob(f"*{_ENDING}"))
    return tuple(sorted(name for name in found if name != _BELOW))


@cache
def load(name: str) -> Recording:
    """Return a model that ships with the suite. Raises ModelsError."""
    return read(DATA / (name + _ENDING))


def load_all(chosen: Iterable[str] | None = None) -> tuple[Recording, ...]:
    """Return these models that ship with the suite; None: all of them. Raises ModelsError."""
    return tuple(load(name) for name in (names() if chosen is None else sorted(chosen)))


@cache
def below() -> Below:
    """Return for each overload the overloads that torch's kernel for all devices calls. Raises ModelsError."""
    return {overload: tuple(inner) for overload, inner in _json(DATA / (_BELOW + _ENDING))["below"].items()}


@cache
def overloads() -> frozenset[str]:
    """Return all overloads whose routes decide what the models that ship with the suite need. Raises ModelsError."""
    called = {overload for name in names() for overload in _called(DATA / (name + _ENDING))}
    return frozenset(called | below().keys() | {inner for each in below().values() for inner in each})


def _called(path: Path) -> set[str]:
    """Return the overloads that a model calls. Reading whole calls would cost each run a quarter of a second."""
    try:
        return {str(row[0]) for row in _json(path)["calls"]}
    except (TypeError, KeyError, IndexError) as e:
        raise ModelsError(f"{path}: not a recorded model ({type(e).__name__}: {e})") from e


def read(path: Path) -> Recording:
    """Return the model of a file. Raises ModelsError."""
    facts = _json(path)
    try:
        calls = tuple(_call(row, facts["programs"]) for row in facts["calls"])
        return Recording(path.name.removesuffix(_ENDING), facts["title"], calls, facts["facts"])
    except (ValueError, TypeError, KeyError, IndexError) as e:
        raise ModelsError(f"{path}: not a recorded model ({type(e).__name__}: {e})") from e


def write(directory: Path, recording: Recording, programs: Sequence[str]) -> Path:
    """Write a model's file, the same bytes for the same calls. Return its path."""
    rows = [_row(call, programs) for call in recording.calls]
    facts = {"title": recording.title, "facts": dict(recording.facts), "programs": list(programs), "calls": rows}
    return _write(directory / (recording.name + _ENDING), facts)


def write_below(directory: Path, found: Below) -> Path:
    """Write the file of the operators below others. Return its path."""
    return _write(directory / (_BELOW + _ENDING), {"below": {name: list(found[name]) for name in sorted(found)}})


def _write(path: Path, facts: dict[str, Any]) -> Path:
    text = json.dumps({"format": FORMAT, **facts}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return path


def _json(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error) as e:
        raise ModelsError(f"{path}: cannot be read ({type(e).__name__}: {e})") from e
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise ModelsError(f"{path}: expected a recorded model of format {FORMAT}")
    return facts


def _row(call: ModelCall, programs: Sequence[str]) -> list[Any]:
    counts = [call.counts.get(program, 0) for program in programs]
    placements = [_placement(p) for p in call.placements]
    return [call.overload, codec.encode(call.sample, 0), placements, call.shared, call.made, counts]


def _placement(p: Placement) -> Any:
    """Return a placement for JSON: 0 for a contiguous tensor, whose size determines its placement."""
    return 0 if p.layout == "contiguous" else [p.layout, p.size, p.stride, p.offset, p.storage, p.bit]


def _call(row: list[Any], programs: Sequence[str]) -> ModelCall:
    overload, written, placements, shared, made, counts = row
    sample = codec.decode(overload, written, _DTYPES)
    placed = tuple(_placed(p, slot.shape) for p, slot in zip(placements, sample.tensors, strict=True))
    by_program = {program: n for program, n in zip(programs, counts, strict=True) if n}
    return ModelCall(sample, placed, tuple((a, b, c) for a, b, c in shared), made, by_program)


def _placed(written: Any, shape: tuple[int, ...]) -> Placement:
    if not written:
        return Placement("contiguous", shape, contiguous_stride(shape), 0, _numel(shape))
    layout, size, stride, *rest = written
    return Placement(layout, tuple(size), tuple(stride), *rest)


def _numel(shape: tuple[int, ...]) -> int:
    n = 1
    for size in shape:
        n *= size
    return n
