"""Samples with numbers and words that the recorded ones lack, for contexts that call few samples.

A gradient rule that omits a factor such as ``alpha`` is right if the factor is 1, as it is by default. A rule that
omits a diagonal or a dilation is right if that number is 0 or 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from conformance.corpus.model import Arg, ComplexArg, Sample

MOST = 6  # of a cell
MOST_OF_INTEGERS = 3  # of a cell, with a further integer or list of integers
# Magnitudes of numbers that scale a gradient and keep it from overflowing.
_LEAST, _LARGEST = 1e-3, 1e3
_ENOUGH = 2  # values of an argument
_SMALL = 4  # magnitude of an integer that is tried
_TINY = 8  # elements of the largest argument

Key = int | str  # the position of an argument, or its name


def with_other_numbers(taken: Sequence[Sample], samples: Sequence[Sample], dtype: str) -> list[Sample]:
    """Return samples in a dtype with a number or a word in an argument that no ``taken`` sample has there.

    Each argument gets every further word, and one further complex number, or float other than 1 and -1, unless it has
    two of these numbers already. An argument of integers, or of lists of integers, gets one further small value, if
    possible a negative one, unless it has two values already. Tensors have the same dtypes as in the taken samples.
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
    further = list(chosen.values())[:MOST]
    return [*further, *_with_other_integers([*taken, *further], [s for s in fit if s not in further])]


def _with_other_integers(taken: Sequence[Sample], fit: Sequence[Sample]) -> list[Sample]:
    """Return samples, each with a further value of an argument of integers that has at most one in ``taken``."""
    known = {one for sample in taken for one in _integers(sample)}
    values = Counter(key for key, _ in known)
    given = [one for sample in (*taken, *fit) for one in _given(sample)]
    of_numbers = {key for key, arg in given if isinstance(arg, (float, ComplexArg))}
    found = [(key, value, s) for s in fit for key, value in _integers(s) if (key, value) not in known]
    found = [one for one in found if one[0] not in of_numbers and max(map(abs, _listed(one[1]))) <= _SMALL]
    found.sort(key=lambda one: (str(one[0]), _rank_of_integers(one[1]), _plainness(one[2], taken)))
    chosen: dict[str, Sample] = {}
    for key, _, sample in found:
        if values[key] < _ENOUGH:
            values[key] = _ENOUGH
            chosen[sample.name] = sample
    return list(chosen.values())[:MOST_OF_INTEGERS]


def _integers(sample: Sample) -> Iterator[tuple[Key, int | tuple[int, ...]]]:
    """Yield the integers and the lists of integers among the arguments of a sample, with their places."""
    for key, arg in _given(sample):
        if _is_integer(arg):
            yield key, arg
        elif isinstance(arg, tuple) and (integers := tuple(n for n in arg if _is_integer(n))) and integers == arg:
            yield key, integers


def _given(sample: Sample) -> list[tuple[Key, Arg]]:
    return [*enumerate(sample.args), *sample.kwargs]


def _is_integer(arg: Arg) -> TypeGuard[int]:
    return isinstance(arg, int) and not isinstance(arg, bool)


def _listed(value: int | tuple[int, ...]) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _rank_of_integers(value: int | tuple[int, ...]) -> tuple[bool, bool, int]:
    """Return a sort key: negative integers come first, then those beyond 1, each in the order of their magnitudes."""
    numbers = _listed(value)
    return min(numbers) >= 0, max(numbers) in (0, 1), sum(map(abs, numbers))


def _fits(sample: Sample, dtype: str) -> bool:
    """Return whether a recorded sample or a variant runs in a dtype, without tensors that are empty or on the host."""
    given = dtype in sample.dtypes and sample.axis in ("", "variants") and not sample.raises
    return given and all(t.numel and not t.on_host for t in sample.tensors)


def telling(sample: Sample) -> Iterator[tuple[Key, Arg]]:
    """Yield the numbers and words among the arguments of a sample that a formula may omit."""
    for key, arg in _given(sample):
        if isinstance(arg, (str, ComplexArg)) or (isinstance(arg, float) and _scales(arg)):
            yield key, arg


def _scales(number: float) -> bool:
    return math.isfinite(number) and _LEAST < abs(number) < _LARGEST and abs(number) != 1


def _rank(value: Arg, dtype: str) -> tuple[bool, bool, float, str]:
    """Return a sort key: positive numbers near 1 come first; in complex dtypes, complex numbers precede real ones."""
    if isinstance(value, float):
        return dtype.startswith("complex"), value < 0, abs(math.log(abs(value))), ""
    return not dtype.startswith("complex"), False, 0.0, str(value)


def _plainness(sample: Sample, taken: Sequence[Sample]) -> tuple[int, bool, int, str]:
    """Return a sort key: tiny samples come last, and samples derived from a taken one come first among equals."""
    elements = max((t.numel for t in sample.tensors), default=0)
    derived = any(sample.name.startswith(f"{s.name}.") for s in taken)
    return -min(elements, _TINY), not derived, len(sample.name), sample.name


def _tensors(sample: Sample) -> tuple[tuple[str, str | None], ...]:
    return tuple((t.argument, t.dtype) for t in sample.tensors)
