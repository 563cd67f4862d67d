"""Counts of the generated samples by axis and class, for the docs."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance.corpus.codec import decode
from conformance.corpus.model import BASES, Sample
from conformance.corpus.places import places
from conformance.plan.kinds import DIMENSIONS, LIST

# The largest extent of each class of sizes.
SIZES = (16, 64, 256, 1024, 4096, 65536)

Row = tuple[str, str, str, str]


def rows(file: Path) -> list[Row]:
    """Return the rows of the table: axis, class, number of overloads, number of samples."""
    overloads: dict[tuple[str, str], set[str]] = defaultdict(set)
    samples: dict[tuple[str, str], int] = defaultdict(int)
    for sample in _samples(file):
        for of in _classes(sample):
            overloads[sample.axis, of].add(sample.overload)
            samples[sample.axis, of] += 1
    order = {of: i for i, of in enumerate(_ORDER)}
    keys = sorted(samples, key=lambda key: (key[0], order.get(key[1], 0), key[1]))
    return [(f"`{axis}`", of, f"{len(overloads[axis, of]):,}", f"{samples[axis, of]:,}") for axis, of in keys]


def _samples(file: Path) -> Iterator[Sample]:
    """Yield the generated samples, read without torch."""
    header, *lines = map(json.loads, gzip.decompress(file.read_bytes()).decode().splitlines())
    for overload, line in zip(header["overloads"], lines, strict=True):
        yield from (decode(overload, row, header["dtype_sets"]) for row in line)


def _classes(sample: Sample) -> Iterator[str]:
    if sample.axis == "sizes":
        yield _size_class(max((n for _, n in places(sample)), default=0))
        if max((len(t.shape) for t in sample.tensors), default=0) > DIMENSIONS:
            yield _RANK
        if any(isinstance(a, tuple) and len(a) > LIST for a in sample.args):
            yield _LISTS
    elif sample.axis == "large":
        yield _LONG if sample.name.endswith("=33001x17") else _MANY
    elif sample.axis == "values":
        yield from _value_classes(sample)
    elif sample.axis == "variants":
        yield from _variant_classes(sample)


def _size_class(size: int) -> str:
    return _SIZE_CLASSES[bisect_left(SIZES, size)]


def _value_classes(sample: Sample) -> Iterator[str]:
    fills = [t.fill.split("/") for t in sample.tensors if t.fill.startswith("hard")]
    pairs = len(fills) > 1 and fills[0][1] not in _VALUES
    if not fills:
        yield "images or rows of very different magnitudes"
    else:
        yield "every pair of hard values" if pairs else _VALUES.get(fills[0][1], _IN_EVERY)


def _variant_classes(sample: Sample) -> Iterator[str]:
    if sample.raises:
        yield "a dimension that CPU refuses"
    elif sample.name.rpartition(".")[2] in BASES:
        yield "dtypes that no recorded sample has"
    elif ".indices=" in sample.name and any(t.name.startswith("indices[") for t in sample.tensors):
        yield "lists of indices that are apart, broadcast, masks, or on the host"
    elif any(t.on_host for t in sample.tensors):
        yield "an operand on the host"
    elif len({t.dtype for t in sample.tensors if t.pool}) > 1:
        yield "operands of two dtypes"
    else:
        yield "another flag, number, dimension or dtype"


def _size_classes() -> Iterable[str]:
    low = 1
    for high in SIZES:
        yield f"largest size {low:,} to {high:,}"
        low = high + 1
    yield f"largest size {low:,} or more"


_SIZE_CLASSES = tuple(_size_classes())
_LONG, _MANY = "33,001 beside sizes of 17", "about 1,100,000 or 3,100,000 elements"
_RANK, _LISTS = f"more than {DIMENSIONS} dimensions", f"lists of more than {LIST}"
_IN_EVERY = "hard values, in every element of one argument"
_VALUES = {
    "sparse": "hard values, in every seventh element of one argument",
    "rare": "long rows of padding", "offset": "long rows far from zero",
    "sweep": "floats of every pattern of leading bits, in one argument", "byte0": "every pair of 8-bit integers",
}  # fmt: skip
_ORDER = (*_SIZE_CLASSES, _RANK, _LISTS, _LONG, _MANY)
