"""The one writer of the corpus' files: pools that hold equal values once, and the index that points into them."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save as save_safetensors

from conformance.corpus.codec import encode
from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.reader import FORMAT, INDEX, VALUES
from conformance.corpus.values import POOL_OF_KIND, convert, kind_of


class PoolBuilder:
    """Grows the pools; the same bytes are stored once."""

    def __init__(self) -> None:
        self._parts: dict[str, list[torch.Tensor]] = {}
        self._sizes: dict[str, int] = {}
        self._seen: dict[tuple[str, bytes], int] = {}
        self._at: dict[tuple[str, int, int], tuple[torch.Tensor, bytes]] = {}

    def add(self, values: torch.Tensor) -> tuple[str, int]:
        """Pool and start of these values, stored as float32, int64, bool, complex64 or float64."""
        dtype = str(values.dtype).removeprefix("torch.")
        pool = "float64" if dtype == "float64" else POOL_OF_KIND[kind_of(dtype)]
        flat = values.detach().resolve_conj().resolve_neg().reshape(-1).to(getattr(torch, pool)).clone()
        data = flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        digest = hashlib.sha256(data).digest()
        start = self._seen.get((pool, digest))
        if start is None:
            start = self._seen[(pool, digest)] = self._sizes.get(pool, 0)
            self._parts.setdefault(pool, []).append(flat)
            self._sizes[pool] = start + flat.numel()
            self._at[(pool, start, flat.numel())] = flat, digest
        return pool, start

    def range(self, slot: TensorSlot) -> torch.Tensor:
        """The stored values of a slot, flat."""
        return self._at[(slot.pool, slot.start, slot.numel)][0]

    def value(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        """As :meth:`conformance.corpus.values.Values.value`, while the corpus is being built."""
        return convert(self.range(slot), slot.dtype or dtype).view(slot.shape)

    def digest(self, slot: TensorSlot) -> bytes:
        """sha256 of the stored values of a slot."""
        return self._at[(slot.pool, slot.start, slot.numel)][1]

    def pools(self) -> dict[str, torch.Tensor]:
        return {pool: torch.cat(parts) for pool, parts in sorted(self._parts.items())}


def write(
    where: Path,
    samples: dict[str, list[Sample]],
    values: PoolBuilder,
    schemas: dict[str, str],
    reasons: dict[str, str],
) -> str:
    """Write both files and return the corpus' hash. Values that no sample uses are left out."""
    where.mkdir(parents=True, exist_ok=True)
    used = PoolBuilder()
    moved = {name: [_move(s, values, used) for s in rows] for name, rows in sorted(samples.items()) if rows}
    pools = used.pools()
    if "complex64" in pools:  # not every version of safetensors knows complex numbers
        pools["complex64"] = torch.view_as_real(pools["complex64"]).reshape(-1)
    data = save_safetensors(pools)
    (where / VALUES).write_bytes(data)
    sets = sorted({s.dtypes for rows in moved.values() for s in rows})
    header = {
        "format": FORMAT,
        "torch": torch.__version__.partition("+")[0],
        "values_sha256": hashlib.sha256(data).hexdigest(),
        "dtype_sets": sets,
        "overloads": list(moved),
        "schemas": {name: schemas[name] for name in moved},
        "reasons": dict(sorted(reasons.items())),
    }
    position = {s: i for i, s in enumerate(sets)}
    lines = [_line([encode(s, position[s.dtypes]) for s in _by_name(rows)]) for rows in moved.values()]
    text = "".join([_line(header), *lines]).encode()
    (where / INDEX).write_bytes(gzip.compress(text, 9, mtime=0))
    return hashlib.sha256(text).hexdigest()


def _by_name(rows: Iterable[Sample]) -> list[Sample]:
    return sorted(rows, key=lambda s: s.name)


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _move(sample: Sample, source: PoolBuilder, target: PoolBuilder) -> Sample:
    tensors = tuple(_move_slot(t, source, target) for t in sample.tensors)

    def move(arg: Arg) -> Arg:
        if isinstance(arg, TensorSlot):
            return tensors[arg.index]
        return tuple(move(a) for a in arg) if isinstance(arg, tuple) else arg

    args = tuple(move(a) for a in sample.args)
    return replace(sample, args=args, kwargs=tuple((k, move(a)) for k, a in sample.kwargs), tensors=tensors)


def _move_slot(slot: TensorSlot, source: PoolBuilder, target: PoolBuilder) -> TensorSlot:
    if not slot.pool:
        return slot
    pool, start = target.add(source.range(slot))
    return replace(slot, pool=pool, start=start)
