"""Samples with numbers and words that the recorded ones lack, for contexts that call few samples.

A rule for a gradient that leaves out a factor such as ``alpha`` is right where the factor is 1, as it is by default.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from conformance.corpus.model import Arg, ComplexArg, Sample

MOST = 6  # of a cell
# Magnitudes of numbers that scale a gradient and keep it from overflowing.
_LEAST, _LARGEST = 1e-3, 1e3
_ENOUGH = 2  # values of an argument
_TINY = 8  # elements of the largest argument

Key = int | str  # the position of an argument, or its name


def with_other_numbers(taken: Sequence[Sample], samples: Sequence[Sample], dtype: str) -> list[Sample]:
    """Return samples in a dtype with a number or a word in an argument that no ``taken`` sample has there.

    Each argument has one further number, a fraction that is not 1, and every further word. An argument that has several
    such numbers already has no further one. Tensors have the dtypes that they have in the taken samples.
    """
    kinds = {_tensors(s) for s in taken}
    known = {(key, value) for s in taken for key, value in telling(s)}
    wanted = Counter(key for key, value in known if not isinstance(value, str))
    fit = [s for s in samples if _fits(s, dtype) and _tensors(s) in kinds and s not in taken]
    found = [(key, value, s) for s in fit for key, value in telling(s) if (key, value) not in known]
    found.sort(key=lambda one: (str(one[0]), _rank(one[1], dtype), _plainness(one[2], taken)))
    chosen: dict[str, Sample] = {}
    for key, value, sample in found:
        if isinstance(value, str) and (key, value) not in known:
            known.add((key, value))
            chosen[sample.name] = sample
        elif not isinstance(value, str) and wanted[key] < _ENOUGH:
            wanted[key] = _ENOUGH
            chosen[sample.name] = sample
    return list(chosen.values())[:MOST]


def _fits(sample: Sample, dtype: str) -> bool:
    """Whether a call with small tensors, none of them empty or on the host, returns in a dtype."""
    given = dtype in sample.dtypes and sample.axis in ("", "variants") and not sample.raises
    return given and all(t.numel and not t.on_host for t in sample.tensors)


def telling(sample: Sample) -> Iterator[tuple[Key, Arg]]:
    """Yield the numbers and words among the arguments of a sample that a formula may lack."""
    given: list[tuple[Key, Arg]] = [*enumerate(sample.args), *sample.kwargs]
    for key, arg in given:
        if isinstance(arg, (str, ComplexArg)) or (isinstance(arg, float) and _scales(arg)):
            yield key, arg


def _scales(number: float) -> bool:
    return math.isfinite(number) and _LEAST < abs(number) < _LARGEST and abs(number) != 1


def _rank(value: Arg, dtype: str) -> tuple[bool, bool, float, str]:
    """A key that puts positive numbers near 1 first; before real ones, complex ones in complex dtypes."""
    if isinstance(value, float):
        return dtype.startswith("complex"), value < 0, abs(math.log(abs(value))), ""
    return not dtype.startswith("complex"), False, 0.0, str(value)


def _plainness(sample: Sample, taken: Sequence[Sample]) -> tuple[int, bool, int, str]:
    """A key that puts tiny samples last, and before them those that differ from the taken ones in more."""
    elements = max((t.numel for t in sample.tensors), default=0)
    derived = any(sample.name.startswith(f"{s.name}.") for s in taken)
    return -min(elements, _TINY), not derived, len(sample.name), sample.name


def _tensors(sample: Sample) -> tuple[tuple[str, str | None], ...]:
    return tuple((t.argument, t.dtype) for t in sample.tensors)
