"""Recorded calls in a safetensors file: the calls as JSON in its header, and each storage once.

A large storage of a floating dtype can be stored as a seed. Its values are then replaced by random values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from conformance import ops
from conformance.calls.model import Call
from conformance.corpus import codec
from conformance.judging.views import torch_dtype
from conformance.layouts import Placement
from conformance.plan.case import Case
from conformance.support.whole_file import replaced
from conformance.vocabulary import CellId

FORMAT = "1"


class CallsError(Exception):
    """A file of calls is missing or damaged, or its format is not supported."""


def save(path: Path, calls: Iterable[Call], largest: int | None = None, facts: dict[str, Any] | None = None) -> None:
    """Write calls. Floating storages of more than ``largest`` bytes are stored as seeds; None: no storage is.

    ``facts``: further data to store as JSON.
    """
    tensors: dict[str, torch.Tensor] = {}
    seeds: dict[str, list[Any]] = {}
    rows = [_row(call, tensors, seeds, largest) for call in calls]
    header = {"format": FORMAT, "calls": json.dumps(rows), "seeds": json.dumps(seeds), "facts": json.dumps(facts or {})}
    with replaced(path) as scratch:
        save_file(tensors or {"none": torch.zeros(1, dtype=torch.uint8)}, str(scratch), metadata=header)


def load(path: Path) -> list[Call]:
    """Return the calls of a file. Raises CallsError."""
    return load_all(path)[0]


def load_all(path: Path) -> tuple[list[Call], dict[str, Any]]:
    """Return the calls and the facts of a file. Raises CallsError."""
    try:
        with safe_open(str(path), framework="pt") as opened:
            header: dict[str, str] = opened.metadata() or {}
            if header.get("format") != FORMAT:
                raise CallsError(f"{path}: format {header.get('format')}, this version reads {FORMAT}; record it again")
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # not a dict
        seeds: dict[str, list[Any]] = json.loads(header["seeds"])
        tensors |= {name: _seeded(*made) for name, made in seeds.items()}
        return [_call(row, tensors) for row in json.loads(header["calls"])], json.loads(header["facts"])
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, IndexError) as e:
        raise CallsError(f"{path}: not a file of recorded calls ({e})") from e


def _row(call: Call, tensors: dict[str, torch.Tensor], seeds: dict[str, list[Any]], largest: int | None) -> Any:
    names = {}
    for key, data in call.storages.items():
        dtype = next(s.dtype or "uint8" for s in call.case.sample.tensors if s.pool == key)
        digest = hashlib.sha256(data.numpy().tobytes()).hexdigest()[:24]
        names[key] = digest
        floating = torch_dtype(dtype).is_floating_point and torch_dtype(dtype).itemsize > 1
        if largest is not None and data.numel() > largest and floating:
            seeds[digest] = [int(digest[:8], 16), data.numel(), dtype]
        else:
            tensors[digest] = data
    placements = [[p.layout, p.size, p.stride, p.offset, p.storage, p.bit] for p in call.case.placements]
    sample = call.case.sample
    head = [sample.overload, call.case.cell.dtype, call.case.cell.layout]
    return [*head, codec.encode(sample, 0), placements, call.case.shared, names]


def _call(row: Any, tensors: dict[str, torch.Tensor]) -> Call:
    overload, dtype, layout, written, placements, shared, names = row
    sample = codec.decode(overload, written, ((dtype,),))
    cell = CellId(ops.facts(overload).family, overload, dtype, layout)
    placed = tuple(Placement(p[0], tuple(p[1]), tuple(p[2]), *p[3:]) for p in placements)
    case = Case(cell, sample, "", placed, tuple(tuple(s) for s in shared))
    return Call(case, {key: tensors[name] for key, name in names.items()})


def _seeded(seed: int, nbytes: int, dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(nbytes // torch_dtype(dtype).itemsize, generator=generator).to(torch_dtype(dtype))
    return values.view(torch.uint8)
