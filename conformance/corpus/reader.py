"""The reader of the corpus: an index of samples, and the pools of their values.

``index.jsonl.gz`` has a header line and a line of samples for each overload, in the header's order.
``values.safetensors`` has one flat pool for each stored dtype. ``generated.jsonl.gz`` has the samples that are
generated from those of the index, in the same form. ``later.safetensors`` has CPU results of a later torch (see
``later.py``). The corpus' hash is that of the text of the index (which contains the hash of the values), the text of
the generated samples, and the later results.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors

from conformance.corpus.codec import decode
from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.values import Values

FORMAT = 1
INDEX = "index.jsonl.gz"
VALUES = "values.safetensors"
GENERATED = "generated.jsonl.gz"
LATER = "later.safetensors"
DATA = Path(__file__).parent / "data"

Cells = dict[str, dict[str, list[str]]]  # the dtypes of generated samples, by overload and layout


class CorpusError(Exception):
    """The files of the corpus are missing, damaged, or of another format."""


@dataclass(frozen=True)
class Generated:
    """The generated samples: their lines by overload, and the sets of dtypes that the lines refer to.

    ``cells`` maps an overload to the layouts that have samples, each with its dtypes. They are stored, since decoding a
    line takes 50 us per sample. ``own_kernel_cells`` has the cells of samples for backends' own kernels.
    """

    dtype_sets: tuple[tuple[str, ...], ...] = ()
    lines: dict[str, str] = field(default_factory=dict)
    cells: Cells = field(default_factory=dict)
    own_kernel_cells: Cells = field(default_factory=dict)


@dataclass(frozen=True)
class Header:
    """The first line of the index."""

    format: int
    torch: str  # the version that ran the samples on CPU
    values_sha256: str
    dtype_sets: tuple[tuple[str, ...], ...]
    overloads: tuple[str, ...]
    schemas: dict[str, str]
    reasons: dict[str, str]


class Corpus:
    """The samples of every overload. They are decoded on first use."""

    def __init__(self, where: Path, hash_: str, header: Header, lines: dict[str, str], generated: Generated) -> None:
        self.where = where
        self.hash = hash_  # SHA-256 in hex, see the module's docstring
        self.torch = header.torch
        self.schemas = header.schemas  # by the torch that built the corpus
        self.reasons = header.reasons  # overload without samples -> reason
        self._header = header
        self._lines = lines
        self._generated = generated
        self._recorded: dict[str, tuple[Sample, ...]] = {}
        self._decoded: dict[str, tuple[Sample, ...]] = {}

    @property
    def overloads(self) -> tuple[str, ...]:
        """The overloads that have samples, sorted."""
        return self._header.overloads

    def samples(self, overload: str) -> tuple[Sample, ...]:
        """Return the samples of an overload, sorted by name; generated ones last. Raises CorpusError if damaged."""
        found = self._decoded.get(overload)
        if found is None:
            generated = self._rows(GENERATED, overload, self._generated.lines, self._generated.dtype_sets)
            found = self._decoded[overload] = self.recorded(overload) + generated
        return found

    def recorded(self, overload: str) -> tuple[Sample, ...]:
        """Return the samples of an overload that were not generated, sorted by name. Raises CorpusError if damaged."""
        found = self._recorded.get(overload)
        if found is None:
            found = self._rows(INDEX, overload, self._lines, self._header.dtype_sets)
            self._recorded[overload] = found
        return found

    def generated_cells(self, overload: str, own_kernel: bool = True) -> Mapping[str, Collection[str]]:
        """Return the layouts for which an overload has generated samples, each with their dtypes.

        ``own_kernel``: include the samples for backends that have a kernel of their own for the overload.
        """
        plain, more = self._generated.cells.get(overload, {}), self._generated.own_kernel_cells.get(overload, {})
        if not (own_kernel and more):
            return plain
        return {name: {*plain.get(name, ()), *more.get(name, ())} for name in (*plain, *more)}

    def value(self, slot: TensorSlot, dtype: str) -> torch.Tensor:
        """Return a contiguous CPU tensor with the slot's values in a cell of ``dtype``; see :meth:`Values.value`."""
        return self._values.value(slot, dtype)

    def load_values(self) -> None:
        """Read the file of values now instead of on first use. Raises CorpusError."""
        _ = self._values

    def _rows(
        self, file: str, overload: str, lines: dict[str, str], sets: tuple[tuple[str, ...], ...]
    ) -> tuple[Sample, ...]:
        try:
            return tuple(decode(overload, row, sets) for row in json.loads(lines.get(overload, "[]")))
        except (ValueError, TypeError, KeyError, IndexError) as e:
            raise CorpusError(f"{self.where / file}: the samples of {overload} cannot be read ({e}); {_REBUILD}") from e

    @cached_property
    def _values(self) -> Values:
        path = self.where / VALUES
        data = _read(path)
        found = hashlib.sha256(data).hexdigest()
        if found != self._header.values_sha256:
            raise CorpusError(
                f"{path}: its hash is {found[:12]}, the index expects {self._header.values_sha256[:12]}: index and "
                f"values are not of the same build, or damaged; {_REBUILD}"
            )
        try:
            pools = load_safetensors(data)
        except SafetensorError as e:
            raise CorpusError(f"{path}: not a safetensors file ({e}); {_REBUILD}") from e
        if "complex64" in pools:
            pools["complex64"] = torch.view_as_complex(pools["complex64"].view(-1, 2))
        return Values(pools)


def load(path: Path | str | None = None, *, generated: bool = True) -> Corpus:
    """Return the corpus in a directory, by default the package's. Raises CorpusError.

    Without ``generated``, the corpus has only the samples of the index.
    """
    return _load(Path(path).resolve() if path is not None else DATA, generated)


@lru_cache(maxsize=4)
def _load(where: Path, generated: bool) -> Corpus:
    path = where / INDEX
    text = _unpacked(path)
    first, *rest = text.split("\n")
    header = _read_header(path, first)
    by_overload = _by_overload(path, header.overloads, rest)
    hash_ = hashlib.sha256(text.encode())
    more = Generated()
    if generated and (where / GENERATED).exists():
        more_text = _unpacked(where / GENERATED)
        more = _read_generated(where / GENERATED, more_text, hash_.hexdigest())
        hash_.update(more_text.encode())
        if (where / LATER).exists():
            hash_.update(_read(where / LATER))
    return Corpus(where, hash_.hexdigest(), header, by_overload, more)


def _unpacked(path: Path) -> str:
    data = _read(path)
    try:
        return gzip.decompress(data).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as e:
        raise CorpusError(f"{path}: not an index of samples ({e}); {_REBUILD}") from e


def _by_overload(path: Path, overloads: Sequence[str], lines: list[str]) -> dict[str, str]:
    """Return the lines after a header, by the overloads that the header lists. The last line must be empty."""
    if len(lines) != len(overloads) + 1 or lines[-1]:
        raise CorpusError(
            f"{path}: the header lists {len(overloads)} overloads, {len(lines) - 1} lines follow; {_REBUILD}"
        )
    return dict(zip(overloads, lines, strict=False))


def _read_generated(path: Path, text: str, index_hash: str) -> Generated:
    first, *lines = text.split("\n")
    try:
        d: dict[str, Any] = json.loads(first)
        made_from, sets, overloads = d["corpus"], tuple(tuple(s) for s in d["dtype_sets"]), d["overloads"]
        cells, own_kernel_cells = _cells(d["cells"]), _cells(d.get("own_kernel_cells", {}))
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise CorpusError(f"{path}: the first line is not a header of this format ({e!r}); {_REBUILD}") from e
    if made_from != index_hash:
        raise CorpusError(
            f"{path}: generated from index {made_from[:12]}, the index is {index_hash[:12]}: the files are not of the "
            f"same build; {_REBUILD}"
        )
    return Generated(sets, _by_overload(path, overloads, lines), cells, own_kernel_cells)


def _cells(words: dict[str, dict[str, str]]) -> Cells:
    return {overload: {name: dtypes.split() for name, dtypes in of.items()} for overload, of in words.items()}


def _read_header(path: Path, line: str) -> Header:
    try:
        d: dict[str, Any] = json.loads(line)
        if d["format"] != FORMAT:
            raise CorpusError(
                f"{path}: format {d['format']}, this version reads {FORMAT}; "
                f"{'update op-conformance' if d['format'] > FORMAT else _REBUILD}"
            )
        return Header(
            format=d["format"],
            torch=d["torch"],
            values_sha256=d["values_sha256"],
            dtype_sets=tuple(tuple(s) for s in d["dtype_sets"]),
            overloads=tuple(d["overloads"]),
            schemas=d["schemas"],
            reasons=d["reasons"],
        )
    except (ValueError, TypeError, KeyError) as e:
        raise CorpusError(f"{path}: the first line is not a header of this format ({e!r}); {_REBUILD}") from e


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise CorpusError(f"{path}: {e.strerror}; {_REBUILD}") from e


_REBUILD = "restore it, or run `conformance corpus build`"
