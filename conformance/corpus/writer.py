"""The writer of the corpus: its index and its values."""

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
from conformance.corpus.drafts import with_slots
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.pools import PoolBuilder
from conformance.corpus.reader import FORMAT, INDEX, VALUES


def write(
    where: Path,
    samples: dict[str, list[Sample]],
    values: PoolBuilder,
    schemas: dict[str, str],
    reasons: dict[str, str],
) -> str:
    """Write the index and the values. Return the hash of the index. Values that no sample uses are omitted."""
    where.mkdir(parents=True, exist_ok=True)
    used = PoolBuilder()
    moved = {name: [_move(s, values, used) for s in _by_name(rows)] for name, rows in sorted(samples.items()) if rows}
    pools = used.pools()
    if "complex64" in pools:  # not every version of safetensors supports complex numbers
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
    lines = [_line([encode(s, position[s.dtypes]) for s in rows]) for rows in moved.values()]
    text = "".join([_line(header), *lines]).encode()
    (where / INDEX).write_bytes(gzip.compress(text, 9, mtime=0))
    return hashlib.sha256(text).hexdigest()


def _by_name(rows: Iterable[Sample]) -> list[Sample]:
    return sorted(rows, key=lambda s: s.name)


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


def _move(sample: Sample, source: PoolBuilder, target: PoolBuilder) -> Sample:
    return with_slots(sample, tuple(_move_slot(t, source, target) for t in sample.tensors))


def _move_slot(slot: TensorSlot, source: PoolBuilder, target: PoolBuilder) -> TensorSlot:
    if not slot.pool:
        return slot
    pool, start = target.add(source.range(slot))
    return replace(slot, pool=pool, start=start)
