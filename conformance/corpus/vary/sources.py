"""Selection of the recorded samples from which others are made, and of the dtypes in which those run."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

from conformance.corpus.calls import HasValues
from conformance.corpus.model import Sample

SAMPLES = {"float32": 2, "int64": 1, "complex64": 1, "bool": 1}  # sources of an overload, by base
OF_OTHER_RANKS = 3  # samples that are varied a little, because of the ranks of their arguments
# A sample of another size runs in the first dtype, and in this many others. The sizes of a group take the others in
# turns, the largest first, so that each dtype has large sizes.
OTHER_DTYPES = 2


def sources(samples: Sequence[Sample], values: HasValues) -> list[Sample]:
    """Return the samples to vary: of each base, those that differ most in the ranks of their arguments."""
    plainness = {s.name: _plainness(s, values) for s in samples if usable(s)}
    found: list[Sample] = []
    for base, most in SAMPLES.items():
        if base == "bool" and found:
            break  # its kernels move or compare bytes, as those of the other dtypes do
        seen: set[object] = set()
        for sample in sorted((s for s in samples if s.base == base and usable(s)), key=lambda s: plainness[s.name]):
            signature = _signature(sample)
            if signature not in seen and len(seen) < most:
                seen.add(signature)
                found.append(sample)
    return found


def sources_of_other_ranks(samples: Sequence[Sample], values: HasValues) -> list[Sample]:
    """Return a few samples with arguments of other ranks than those of the samples to vary, e.g. of one row."""
    plainness = {s.name: _plainness(s, values) for s in samples if usable(s)}
    seen = {(s.base, _ranks(s)) for s in sources(samples, values)}
    bases = {base for base, _ in seen}
    found = []
    for sample in sorted((s for s in samples if s.base in bases and usable(s)), key=lambda s: plainness[s.name]):
        form = (sample.base, _ranks(sample))
        if form not in seen and any(s.numel > 1 for s in sample.tensors):
            seen.add(form)
            found.append(sample)
    return found[:OF_OTHER_RANKS]


def with_bools(samples: Sequence[Sample], values: HasValues) -> list[Sample]:
    """Return the samples to vary, and bool samples even if there are others: a kernel may read bools in words."""
    bools = sources([s for s in samples if s.base == "bool"], values)
    return list({s.name: s for s in (*sources(samples, values), *bools)}.values())


def usable(sample: Sample) -> bool:
    """Return whether other samples can be generated from a sample."""
    return not sample.raises and not sample.axis


def _is_alike(sample: Sample, values: HasValues) -> bool:
    """Return whether each argument of several elements has only equal elements, such as the counts of a mask."""
    slots = [s for s in sample.tensors if s.pool and s.numel > 1 and s.dtype is None and not s.same_as]
    flat = (values.value(s, sample.base).view(-1) for s in slots)
    return bool(slots) and all(bool((v == v[0]).all()) for v in flat)


def _plainness(sample: Sample, values: HasValues) -> tuple[bool, bool, bool, int, str]:
    """Return a sort key that puts samples with empty tensors last, then those of single elements or equal values."""
    sizes = [s.numel for s in sample.tensors if s.pool]
    other = sum(bool(s.pool) and (s.dtype is not None or bool(s.same_as)) for s in sample.tensors)
    return (0 in sizes, bool(sizes) and max(sizes) < 2, _is_alike(sample, values), other, sample.name)


def _ranks(sample: Sample) -> tuple[int, ...]:
    return tuple(len(s.shape) for s in sample.tensors if s.pool)


def _signature(sample: Sample) -> object:
    ranks = tuple((len(s.shape), 1 in s.shape) for s in sample.tensors if s.pool)
    return ranks, tuple(name for name, arg in sample.kwargs if arg is not None)


class Turns:
    """The dtypes of the samples that are made from one sample: always the first, and the others in turns."""

    def __init__(self, source: Sample) -> None:
        self.first = source.base if source.base in source.dtypes else source.dtypes[0]
        self._others = [d for d in source.dtypes if d != self.first and not d.startswith("float8") and d != "complex32"]
        self._start = zlib.crc32(source.name.encode())
        self.taken = 0  # turns

    def dtypes(self) -> tuple[str, ...]:
        """Return the first dtype, and the others beginning with those whose turn it is."""
        return (self.first, *self._from(self.taken))

    def counted(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        """Yield the samples. Each takes a turn."""
        for sample in samples:
            self.taken += 1
            yield sample

    def of(self, name: str) -> tuple[str, ...]:
        """Return the first dtype, and another one: the dtype at the end of ``name``, or one that ``name`` selects."""
        named = tuple(d for d in self._others if name.endswith(f"_{d}"))
        return (self.first, *(named or self._from(zlib.crc32(name.encode())))[:1])

    def _from(self, turn: int) -> tuple[str, ...]:
        at = (self._start + turn * OTHER_DTYPES) % max(len(self._others), 1)
        return (*self._others[at:], *self._others[:at])
