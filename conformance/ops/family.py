"""The types of the facts about ops that a schema does not state: facts, families, and our own samples. No torch."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any


class Equivalence(str, Enum):
    """The comparison of a result that need not be unique."""

    EQUAL = "equal"  # element by element, within the tolerance
    METADATA = "metadata"  # shape, dtype and stride only: the content is undefined, or depends on the implementation
    PRIVATE = "private"  # a tensor of any size that a kernel keeps for its own backward kernel
    INDEX_OF_EQUAL = "index_of_equal"  # any index at which the first tensor argument holds an equal value
    INDEX_OF_TAKEN = "index_of_taken"  # the same, each element taken once; in order if ``stable=True``
    UP_TO_PHASE = "up_to_phase"  # columns, each up to a factor of modulus one
    ROWS_UP_TO_PHASE = "rows_up_to_phase"  # the same for rows
    UNORDERED = "unordered"  # the same elements in any order

    @property
    def is_of_values(self) -> bool:
        """Whether values are compared."""
        return self not in (Equivalence.METADATA, Equivalence.PRIVATE)

    def __str__(self) -> str:
        return self.value


class Accumulation(str, Enum):
    """The number of terms that are summed into one element of a result, with which its rounding error grows."""

    NONE = "none"
    REDUCED = "reduced"  # elements of the largest argument / elements of the result; if not fewer, a longest row
    INNER = "inner"  # the last dimension of the first factor (matrix products)
    WINDOW = "window"  # elements of the weight, or kernel, / size of its first dimension
    ALL = "all"  # elements of the largest argument
    REPEATED = "repeated"  # how often an index names one element, which is the sum of the values written to it alone
    FEW = "few"  # a few terms, which may cancel: 1 - y * y
    CANCELS = "cancels"  # nothing is summed, but two numbers as large as the arguments cancel: 1 + erf(x), left of 0

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest distance of a native kernel's result from the float64 result.

    The limit is the larger of two distances: ``cpu_multiple`` times the CPU's own distance, and ``ulps`` units in the
    last place of the result's dtype, times the square root of the accumulation length if there is one (small floats are
    to be summed in float32, and round once). Integers are exact unless they have a spread.

    The units are those of each element. If common algorithms are accurate only by the norm (``normwise``), the units
    are those of the largest element over all dimensions from ``first_dim`` on: the two of each matrix, or an image's.
    """

    ulps: float = 2.0
    cpu_multiple: float = 2.0
    accumulation: Accumulation = Accumulation.NONE
    normwise: bool = False
    first_dim: int = 0

    @property
    def exact(self) -> bool:
        """Whether the op moves or makes values without rounding, so that bits must be equal."""
        return self.ulps == 0.0


EXACT = Tolerance(ulps=0.0, cpu_multiple=0.0)
ROUNDED = Tolerance(ulps=1.0)  # one correctly rounded operation, or two
ADDED = Tolerance(ulps=1.0, accumulation=Accumulation.REPEATED)  # one rounded sum for each write to an element
TRANSCENDENTAL = Tolerance(ulps=4.0)
SUMMED = Tolerance(ulps=4.0, accumulation=Accumulation.REDUCED)
# Factorizations, long recurrences.
ITERATED = Tolerance(ulps=64.0, cpu_multiple=8.0, accumulation=Accumulation.ALL, normwise=True, first_dim=-2)


@dataclass(frozen=True, slots=True)
class Random:
    """Random results. They are equal under the same seed on the same device, and are compared by their distribution."""

    distribution: str  # "uniform", "normal", ... as torch names the sampler
    results: tuple[int, ...] = (0,)  # positions of the random results


@dataclass(frozen=True, slots=True)
class OpFacts:
    """The facts that hold for an overload on every backend. Known failures of one backend do not belong here."""

    family: str
    tolerance: Tolerance = ROUNDED
    random: Random | None = None
    undefined: tuple[int, ...] = ()  # positions of results whose content is not defined
    equivalence: tuple[tuple[int, Equivalence], ...] = ()  # position of a result -> how to compare it
    host: tuple[str, ...] = ()  # tensor arguments that are on the CPU, whatever device the others are on
    may_alias: bool = False  # a result may share memory with an argument or not: both are right
    overruns: tuple[str, ...] = ()  # layouts in which CPU's kernel goes past an argument's end: not run
    doubtful: tuple[str, ...] = ()  # layouts in which CPU's kernel reads outside its arguments, in some cases
    undefined_in: tuple[str, ...] = ()  # dtypes that do not hold the samples' numbers, so any result is right: not run
    either_zero: bool = False  # of two zeros that compare equal either may be returned, whatever its sign
    moves: bool = False  # results are elements of the arguments, bit for bit, where nothing is added up
    signed_zeros: bool = False  # the sign of a zero is that of IEEE 754, or of the C standard's annex F
    fixed: tuple[str, ...] = ()  # arguments that keep their values in generated samples: other results may be undefined
    last_wins: bool = False  # of two writes to one element either may win: generated indices are distinct
    singular_values: int | None = None  # position of the singular values of the two results up to phase, pair by pair
    eigenvalues: int | None = None  # position of a Hermitian matrix's eigenvalues; distances limit vectors' errors
    factorizes: bool = False  # the result for a matrix that is not finite, or has no factors, is undefined
    computed_in: str = ""  # a dtype to which CPU's kernel rounds intermediate values of any dtype; "" if none
    picks_kernel: bool = False  # calls another overload on another device, whose gradients may have other strides
    unstable: str = ""  # why even CPU may give other bits in a second call; "" if it does not
    only_way: bool = False  # a composite that alone reaches a kernel which has no overload of its own, or no samples
    cpu_alone: bool = False  # torch registers a kernel for all devices that works on CPU memory only
    cannot: str = ""  # why no sample can reach it; "" if one should

    def equivalence_of(self, result: int) -> Equivalence:
        """Return the comparison for the result at a position."""
        if result in self.undefined:
            return Equivalence.METADATA
        return dict(self.equivalence).get(result, Equivalence.EQUAL)


@dataclass(frozen=True, slots=True)
class T:
    """A tensor of a sample of our own: its shape and what it is filled with.

    ``fill`` is ``normal``, ``uniform`` (0 to 1), ``positive`` (0.5 to 2), ``zeros``, ``ones``, ``arange``, ``mask`` (a
    bool of both values), ``index:N`` (0 to N-1), ``undefined`` (an ``out=``), or the values themselves, flat.
    ``dtype`` None follows the cell.
    """

    shape: tuple[int, ...]
    fill: str | tuple[float, ...] = "normal"
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Dtype:
    """A ``dtype=`` argument; None follows the cell."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """A ``device=`` argument."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """A ``generator=`` argument: a generator of the side's own device."""


@dataclass(frozen=True, slots=True)
class Own:
    """A sample of our own: arguments in schema order, lists as tuples."""

    overload: str
    label: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    bases: tuple[str, ...] = ("float32",)
    raises: bool = False


def own(overload: str, label: str, *args: Any, bases: str = "float32", raises: bool = False, **kwargs: Any) -> Own:
    """Return a sample of our own, from arguments as in a call. ``bases`` are words, e.g. ``"float32 int64"``."""
    return Own(overload, label, args, kwargs, tuple(bases.split()), raises)


@dataclass(frozen=True, slots=True)
class Family:
    """Ops that share their facts, named by operator (``masked_fill``, which includes in-place forms) or by pattern.

    ``but`` changes fields of the shared facts, by operator, pattern or overload; the most exact name wins. ``samples``
    are recorded, with their values. ``configurations`` are generated: ``normal`` is ``uniform`` there, and any other
    fill is a fill of :mod:`conformance.corpus.fills`. So they may be large, and a new configuration does not change the
    recorded samples.
    """

    name: str
    ops: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    but: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    samples: tuple[Own, ...] = ()
    configurations: tuple[Own, ...] = ()

    def facts_of(self, overload: str) -> OpFacts:
        """Return the shared facts, with the changes for this overload."""
        facts = OpFacts(self.name, **self.facts)
        operator = operator_of(overload)
        for pattern, changes in _patterns(self.but):
            if fnmatch.fnmatchcase(operator, pattern):
                facts = replace(facts, **changes)
        for exact in (operator, overload) if operator != overload else (operator,):
            if exact in self.but:
                facts = replace(facts, **self.but[exact])
        return facts


def _patterns(but: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the entries that are patterns. The longest pattern is last, since it is the most exact one."""
    return sorted(((k, v) for k, v in but.items() if "*" in k), key=lambda entry: len(entry[0]))


NAN, INF = float("nan"), float("inf")


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def operator_of(overload: str) -> str:
    """Return the operator without the mark of the in-place form: ``masked_fill`` for ``masked_fill_.Scalar``."""
    base = overload.partition(".")[0]
    return base[:-1] if base.endswith("_") and not base.endswith("__") else base
