"""Values of generated samples. They are computed from positions, so nothing large is stored.

A fill gives the same bits on every torch version and machine: positions are mixed in integer arithmetic, and a float is
multiplied once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import torch

# Multipliers of a 32-bit mixing function (two rounds of xor-shift and multiply).
_MIX = 0x45D9F3B
_MASK = 0xFFFFFFFF
# The largest fraction by which ``jitter`` moves a stored value towards zero.
_SHRINK = 1 / 32
# In ``hard/rare``, about one element in this many is not the padding.
_PADDED = 200
# The step between successive 16-bit patterns of ``hard/sweep``. Since it is odd, its multiples modulo 2**16 are all
# patterns. A few multiples in a row are evenly spread.
_STEP = 40503
_PATTERNS = 1 << 16
# The magnitudes of ``moderate``: those that programs compute with. Beyond them, many functions overflow or underflow.
_MODERATE = (2.0**-20, 2.0**8)
# Factors for the images of ``scaled``, in turn. They are thousands of times apart, and the square of neither overflows
# in float16.
_MAGNITUDES = (2.0**6, 2.0**-7)
# ``hard/byte0`` changes with each element, and ``hard/byte1`` whenever the first has gone through all bytes.
_PAIRED = ("byte0", "byte1")
# The offset of ``hard/offset``, from which its values differ by at most 1. float16 still distinguishes them, bfloat16
# barely.
_OFFSET = 100

_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Fill = Callable[[torch.Tensor, int, int], torch.Tensor]  # stored values, number of elements, seed -> values


def mixed(count: int, seed: int) -> torch.Tensor:
    """Return ``count`` integers in 0 to 2**32 - 1 that look random, one for each position."""
    return torch.from_numpy(_mixed(count, seed).astype(np.int64))


@lru_cache(maxsize=8)  # a sample is made on both sides, and in several dtypes
def _mixed(count: int, seed: int) -> npt.NDArray[np.uint32]:
    """Return the integers of :func:`mixed` as uint32. Do not write to them: they are cached."""
    h = np.arange(count, dtype=np.uint32)  # a third of the time of int64, which has to be masked after each step
    h *= np.uint32(0x9E3779B1)
    h += np.uint32(seed & _MASK)
    for _ in range(2):
        h ^= h >> np.uint32(16)
        h *= np.uint32(_MIX)
    h ^= h >> np.uint32(16)
    return h


# Not every torch version supports ``index_select`` and ``where`` for each unsigned dtype. So signed integers with the
# same bits are moved, which is ten times as fast as moving bytes.
def _taken(values: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Return the values at the indices ``at``."""
    rows = _as_integers(values)
    if rows.shape[1] == 1:  # torch takes numbers ten times as fast as rows of one number
        return rows.view(-1).index_select(0, at).view(values.dtype)
    return rows.index_select(0, at).view(values.dtype).view(-1)


def _either(chosen: torch.Tensor, values: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Return ``values`` where ``chosen`` is true, and ``others``, of the same dtype, elsewhere."""
    moved = torch.where(chosen.unsqueeze(1), _as_integers(values), _as_integers(others))
    return moved.view(values.dtype).view(-1)


def _as_integers(values: torch.Tensor) -> torch.Tensor:
    """Return the bits of each value as a row of one integer, or of two for complex128."""
    dtype = _SIGNED.get(values.element_size(), torch.int64)
    return values.contiguous().view(dtype).view(values.numel(), values.element_size() // dtype.itemsize)


def _below(count: int, bound: int, seed: int) -> torch.Tensor:
    """Return :func:`mixed` modulo a bound. A 32-bit division takes a third of the time of a 64-bit one."""
    drawn = torch.empty(count, dtype=torch.int64)  # from_numpy() gives an empty tensor a stride of 0
    drawn.numpy()[:] = _mixed(count, seed) % np.uint32(bound)
    return drawn


def _choose(stored: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Return stored values, each drawn independently."""
    return _taken(stored, _below(count, stored.numel(), seed))


def _jitter(stored: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Return stored values, each moved a little towards zero: few are equal, and all stay in the domain."""
    chosen = _choose(stored, count, seed)
    factor = torch.from_numpy(_mixed(count, seed + 1).astype(np.float64)).mul_(-_SHRINK / (_MASK + 1)).add_(1)
    parts = torch.view_as_real(chosen) if chosen.is_complex() else chosen
    moved = (parts.to(torch.float64) * (factor.unsqueeze(-1) if chosen.is_complex() else factor)).to(parts.dtype)
    return torch.view_as_complex(moved) if chosen.is_complex() else moved


def _sorted(stored: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Return drawn stored values, among them the first and the last stored value, in ascending order."""
    if count < 2:
        return stored[:count]
    drawn = _choose(stored, count, seed)
    drawn[0], drawn[-1] = stored[0], stored[-1]
    return drawn.sort().values


def _ascending(stored: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Return values of ``jitter``, or of ``choose`` for integers, in ascending order. Complex values raise an error."""
    made = _jitter(stored, count, seed) if stored.is_floating_point() else _choose(stored, count, seed)
    return made.sort().values


_STORED: dict[str, Fill] = {
    "choose": _choose,
    "jitter": _jitter,
    "sorted": _sorted,
    "ascending": _ascending,
    "uniform": lambda _, count, seed: (mixed(count, seed).to(torch.float64) / 2**30 - 2).to(torch.float32),
    "halves": lambda stored, count, seed: _choose(stored, count, seed).to(torch.float32) + 0.5,
    "descending": lambda stored, count, seed: _ascending(stored, count, seed).flip(0),
}


def from_stored(fill: str, stored: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Return ``count`` values for a fill that does not begin with ``hard``.

    ``choose``, ``jitter``, ``sorted``, ``ascending`` and ``descending`` make values from the stored ones, in their
    dtype. ``halves`` adds 0.5 to stored whole numbers, as floats. ``uniform`` ignores the stored values and gives
    floats from -2 to 2.
    ``below/N`` draws integers from 0 to N - 1, and the last one is N - 1. ``distinct/N`` draws different integers below
    N (``count`` is at most N). ``around/N`` names the same elements of a dimension of size N, but every second index is
    negative and counts from the end.
    ``runs/N`` has first all zeros, then all ones, and so on up to N - 1. ``rows/C/N`` fills a matrix of C columns with
    integers below N, without repetition in any row or column that is not longer than N. ``keys/C/N`` fills a matrix of
    C columns with ones and zeros: each row has a one, and about one in N of the other elements is one too, or none for
    an N of 0. ``barred/C/N`` is 0 where ``keys/C/N`` is one, and minus infinity elsewhere. ``scaled/N`` has the stored
    floats in order, where each image of N elements is multiplied by 64 or by 1/128, in turn.
    Raises ValueError for an unknown fill.
    """
    make = _STORED.get(fill)
    if make is not None:
        return make(stored, count, seed)
    kind, _, bound = fill.partition("/")
    if kind == "below" and bound.isdigit():
        drawn = _below(count, int(bound), seed)
        drawn[-1:] = int(bound) - 1  # few draws would leave out the end, where an index that was cut goes wrong
        return drawn
    if kind in ("distinct", "around") and bound.isdigit() and count <= int(bound):
        drawn = mixed(int(bound), seed).sort(stable=True).indices[:count]
        if kind == "around":
            drawn[1::2] -= int(bound)
        return drawn
    if kind == "runs" and bound.isdigit():
        return torch.arange(count) * int(bound) // max(count, 1)
    if kind == "scaled" and bound.isdigit():
        at = torch.arange(count)
        return _taken(stored, at % stored.numel()) * torch.tensor(_MAGNITUDES, dtype=stored.dtype)[at // int(bound) % 2]
    if kind in ("keys", "barred"):
        columns, of = map(int, bound.split("/"))
        kept = _keys(count, columns, of, seed)
        return kept.to(torch.int64) if kind == "keys" else torch.where(kept, 0.0, float("-inf"))
    if kind == "rows":
        at = torch.arange(count)
        columns, of = map(int, bound.split("/"))
        return (at // columns + at % columns) % of
    raise ValueError(f"unknown fill {fill!r} for {count} elements: see the functions of {__name__}")


def _keys(count: int, columns: int, of: int, seed: int) -> torch.Tensor:
    """Return which elements of a matrix are kept: one in each row, in a column that moves, and one in ``of`` others."""
    at = torch.arange(count)
    row, column = at // columns, at % columns
    kept = column == (row * 7 + 3) % columns
    return kept | (_below(count, of, seed) == 0) if of else kept


# The largest finite float64 value in ``hard/sparse``. A sum of squares of larger values overflows, and no wider dtype
# can compute the expected result.
_SUMMED = 1e150
# Numbers at which floating-point kernels go wrong: signed zeros, halfway cases of rounding, the limits of integer
# types, arguments at which functions overflow, large angles, neighbours of powers of two.
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 2.0, -2.0, 3.0, -3.0, 1 / 3, 0.1, 0.99, -0.99, 1.01,
    float("inf"), float("-inf"), 1e-3, 1e-7, 1e-20, 7.0, -7.0, 20.5, 22.0, 88.0, 89.5, -87.5,
    -104.0, 126.5, 127.5, 128.0, -128.5, 255.5, 256.5, 1024.0, 2049.0, 32767.5, 65504.0, 65520.0, 1e5, 16777217.0,
    -16777217.0, 2147483647.0, 2147483648.0, -2147483649.0, 9007199254740993.0, 1e18, 1e30, 3e38, 710.0, -745.5,
)  # fmt: skip
# 2**53 + 1 comes before 2**53, to which float64 rounds it: a kernel that compares in float64 and takes the last of
# equal values gives a wrong result. A kernel that takes the first one is wrong at the limits, see hard().
_INTEGERS = (
    0, 1, -1, 2, -2, 3, -3, 5, 7, -8, 10, 15, 31, 32, 33, 63, 64, 65, -64, 100, 126, 127, 128, -127, -128, -129, 254,
    255, 256, 257, 1000, 32767, 32768, -32768, 65535, 65536, 2**24, 2**24 + 1, -(2**24) - 1, 2**31 - 1, 2**31,
    -(2**31), 2**32 + 1, 2**53 + 1, 2**53, -(2**53) - 1,
)  # fmt: skip
# There is no infinity, NaN, or number whose square overflows: C does not specify the products of these.
_COMPLEX = tuple(
    complex(*parts)
    for parts in ((0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (-1.0, -0.0),
                  (3.0, 4.0), (-0.5, 2.5), (1e-15, 1.0), (1.0, 1e-15), (1e-15, 0.0), (0.0, 1e-15), (1e15, 1.0),
                  (1 / 3, -1e15), (2.0, 2.0), (88.0, 0.1))
)  # fmt: skip

# Infinities and NaN in either part, for ops that compute nothing.
_INFINITE = tuple(
    complex(real, imaginary)
    for real in (float("inf"), float("-inf"), float("nan"), 1.0)
    for imaginary in (float("inf"), float("-inf"), float("nan"), 1.0)
)


@cache
def hard(dtype: str) -> torch.Tensor:
    """Return the values of a dtype at which kernels go wrong, each once. Do not write to it."""
    target = getattr(torch, dtype)
    if dtype == "bool":
        return torch.tensor([False, True])
    if target.is_complex:
        return torch.tensor(_COMPLEX, dtype=target)
    if not target.is_floating_point:
        info = torch.iinfo(target)
        # Each limit follows its neighbour: if both round to the same float, taking the first of equal values is wrong.
        limits = (*((info.min + 1, info.min) if info.min < 0 else ()), info.max - 1, info.max)
        others = (n for n in _INTEGERS if info.min <= n <= info.max and n not in limits)
        return torch.tensor([*others, *limits], dtype=target)
    info_f = torch.finfo(target)
    tiny = float(info_f.smallest_normal)
    own_f = (tiny, -tiny, tiny * 0.5, tiny * info_f.eps, -tiny * info_f.eps, info_f.max, info_f.min,
             1 + info_f.eps, 1 - info_f.eps / 2, -1 - info_f.eps)  # fmt: skip
    rounded = torch.tensor([*_FLOATS, *own_f], dtype=torch.float64).to(target)
    keys = list(zip(rounded.tolist(), rounded.signbit().tolist(), strict=True))
    first = [i for i, key in enumerate(keys) if keys.index(key) == i]
    return torch.cat([rounded[first], _nans(target)])


def _nans(dtype: torch.dtype) -> torch.Tensor:
    """Return NaN, the negative NaN whose bits are all set, and the NaN next to infinity.

    Careless rounding of the second one to fewer bits carries into the exponent and gives zero. Truncation of the third
    one gives infinity. A copy of the third one keeps its bits, and a computation makes it quiet.
    """
    infinity = torch.tensor([float("inf"), float("-inf"), float("inf")], dtype=dtype).view(_SIGNED[dtype.itemsize])
    behind = round(1 / torch.finfo(dtype).eps)  # the number of values of the mantissa bits
    return (infinity + torch.tensor([behind // 2, behind - 1, 1], dtype=infinity.dtype)).view(dtype)


def from_hard(fill: str, stored: torch.Tensor, count: int, dtype: str, seed: int) -> torch.Tensor:
    """Return ``count`` values of a dtype from its hard values.

    ``hard/N`` takes the hard values in turn, and repeats each L**N times, where L is the number of hard values:
    ``hard/0`` and ``hard/1`` together have every pair. In ``hard/sparse``, every seventh element is a hard value, and
    the others are made from ``stored``. Ops sum these elements, so the largest finite values of float64 are left out. A
    third part limits the hard values: ``nonzero``, ``positive``, or the range of an integer dtype (``hard/0/int8``),
    since C does not define the conversion of other values to that dtype. For uint8, the range is that of int32, since
    torch converts by way of int64 (c10/util/TypeCast.h).
    ``hard/all/X`` has the same value everywhere: ``0`` or ``max``; ``-0``, ``0.1``, ``inf``, ``-inf`` or ``nan`` for
    floats; ``min`` or a number for integers.
    ``hard/last/X`` has the value only in the last element, after values made from ``stored``. ``hard/rare/X`` has it in
    all elements but a few. ``hard/offset`` has numbers that differ from 100 by at most 1. ``hard/infinite`` has complex
    numbers with infinities and NaN, which ``hard/0`` leaves out.
    ``hard/sweep`` has all 16-bit floats, or for wider dtypes a float for each pattern of the leading 16 bits.
    ``moderate`` limits them to magnitudes from 2**-20 to 2**8. ``hard/byte0`` and ``hard/byte1`` together have every
    pair of 8-bit integers.
    Raises ValueError for a value that the dtype does not have.
    """
    _, how, limit = (*fill.split("/"), "")[:3]
    if how == "all":
        return torch.full((count,), _number(limit, dtype), dtype=getattr(torch, dtype))
    if how == "last":
        made = from_stored("choose", stored, count, seed)
        made[-1:] = _number(limit, dtype)
        return made
    if how == "rare":
        return _padded(stored, count, _number(limit, dtype), seed)
    if how == "offset":
        made = _jitter(stored, count, seed).to(torch.float64)
        return (made / made.abs().max().clamp_min(1e-300) + _OFFSET).to(getattr(torch, dtype))
    if how == "infinite":
        values = torch.tensor(_INFINITE, dtype=getattr(torch, dtype))
        return values[torch.arange(count) % len(_INFINITE)]
    values = _swept(dtype) if how == "sweep" else _bytes(dtype) if how in _PAIRED else hard(dtype)
    if limit:
        values = _within(values, limit)
    at = torch.arange(count)
    if how != "sparse":
        power = int(how) if how.isdigit() else _PAIRED.index(how) if how in _PAIRED else 0
        return _taken(values, (at // values.numel() ** power) % values.numel())
    values = values[~(values.isfinite() & (values.abs() > _SUMMED))] if dtype == "float64" else values
    made = _jitter(stored, count, seed) if stored.is_floating_point() else _choose(stored, count, seed)
    return _either(at % 7 == 3, _taken(values, (at // 7) % values.numel()), made)


@lru_cache(maxsize=4)
def _swept(dtype: str) -> torch.Tensor:
    """Return a float for each pattern of the 16 leading bits, with mixed other bits, and one bit pattern for all NaNs.

    Do not write to the result: it is cached.
    """
    target = getattr(torch, dtype)
    behind = 8 * target.itemsize - 16
    leading = (torch.arange(_PATTERNS) * _STEP) % _PATTERNS
    leading = torch.where(leading < _PATTERNS // 2, leading, leading - _PATTERNS)  # the first bit is the sign
    pattern = (leading << behind) | (mixed(_PATTERNS, behind) & ((1 << behind) - 1))
    values = pattern.to(_SIGNED[target.itemsize]).view(target)
    return values.masked_fill(values.isnan(), float("nan"))


def _bytes(dtype: str) -> torch.Tensor:
    """Return all integers of a dtype of 8 bits."""
    return torch.arange(256, dtype=torch.uint8).view(getattr(torch, dtype))


def _padded(stored: torch.Tensor, count: int, padding: float, seed: int) -> torch.Tensor:
    """Return padding with a few other elements, among them the last: made from stored values, or the other bool."""
    made = _jitter(stored, count, seed) if stored.is_floating_point() else _choose(stored, count, seed)
    other = torch.full_like(made, not padding) if made.dtype == torch.bool else made
    rare = _below(count, _PADDED, seed + 2) == 0
    rare[-1:] = True
    return _either(rare, other, torch.full_like(made, padding))


def has(fill: str, dtype: str) -> bool:
    """Return whether a dtype has the number that a fill puts in its elements; True for a fill without a number."""
    how, _, word = fill.removeprefix("hard/").partition("/")
    if how not in ("all", "last", "rare"):
        return True
    try:
        _number(word, dtype)
    except ValueError:
        return False
    return True


def _number(word: str, dtype: str) -> float:
    """Return the number that a word names in a dtype. Raises ValueError if the dtype does not have it."""
    target = getattr(torch, dtype)
    inexact = target.is_floating_point or target.is_complex
    if word in ("min", "max") and not inexact and dtype != "bool":
        return int(getattr(torch.iinfo(target), word))
    if word == "max" and target.is_floating_point:
        return float(torch.finfo(target).max)
    if word == "1" and dtype == "bool":
        return 1
    if word == "0" or (word in ("-0", "0.1", "inf", "-inf", "nan") and inexact):
        return float(word) if inexact else 0
    if not inexact and dtype != "bool" and word.removeprefix("-").isdigit():
        info = torch.iinfo(target)
        if info.min <= int(word) <= info.max:
            return int(word)
    raise ValueError(f"no value {word!r} of {dtype}")


def _within(values: torch.Tensor, limit: str) -> torch.Tensor:
    if limit == "nonzero":
        return values[values != 0]
    if limit == "positive":
        return values[values > 0]
    if limit == "moderate":
        least, most = _MODERATE
        return values[(values.abs() >= least) & (values.abs() <= most)]
    info = torch.iinfo(torch.int32 if limit == "uint8" else getattr(torch, limit))
    wide = (values.real if values.is_complex() else values).to(torch.float64)
    return values[(wide > info.min) & (wide < float(info.max) - 1)]
