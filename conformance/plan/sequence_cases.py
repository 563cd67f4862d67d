"""The cases of a cell of sequences: calls after others that differ from them in one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from conformance.corpus.model import BEYOND_FLOAT, Arg, Sample, TensorSlot
from conformance.corpus.places import with_arguments, with_tensors
from conformance.plan.case import Case, movable, placed, plainly, put
from conformance.vocabulary import CellId

# The dtypes of cells of sequences, and the calls before a call in a sequence: at most this many of each kind.
DTYPES = ("float32", "int64")
_OF_NUMBERS, _OF_INTEGERS = ("float32",), ("int64",)
SAMPLES = 2
_LAYOUTS_BEFORE = ("transposed", "offset_gap", "expanded")
_VARIANTS_BEFORE = 12
_SIZES_BEFORE = 8  # all of them before one call: more than a small cache holds
# Numbers of a call and of the call before it: their texts with six decimals, or with six digits, are equal; or the
# numbers are equal, but not the same.
ALIKE = ((4e-7, 1e-7), (1000003.0, 1000001.0), (-0.0, 0.0))
# The same for integers, as doubles.
ONE_DOUBLE = ((2**53 + 1, 2**53), (-(2**53) - 1, -(2**53)))
# The same for an operand that is a number on the host: its values in the words of fills, by its dtype.
ALIKE_ON_HOST = {"float32": ("-0", "0"), "int64": (str(2**53 + 1), str(2**53))}


def sequences(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yield the cases of a cell of sequences: each is a sample's call after calls that differ from it in one thing."""
    plain = [s for s in samples if not s.axis and not s.raises and cell.dtype in s.dtypes]
    variants = [s for s in samples if s.axis == "variants" and not s.raises and cell.dtype in s.dtypes]
    plain.sort(key=lambda sample: not _variants_of(sample, variants))  # those with variants first
    for sample in plain[:SAMPLES]:
        others = _variants_of(sample, variants)[:_VARIANTS_BEFORE]
        for label, before in _before(cell, sample, others, samples):
            yield Case(cell, sample, f"after={label}", put(sample, {}), (), tuple(before))
        # The other way round: a cache may keep the entry of the first call with a shape.
        yield from (_behind(cell, variant, sample) for variant in others)
    if cell.dtype in _OF_NUMBERS:
        yield from _of_numbers_alike(cell, plain)
    if cell.dtype in _OF_INTEGERS:
        yield from _of_large_integers(cell, [s for s in samples if not s.raises and cell.dtype in s.dtypes])
    if cell.dtype in ALIKE_ON_HOST:
        yield from _of_host_numbers_alike(cell, [s for s in samples if not s.raises and cell.dtype in s.dtypes])


def _before(
    cell: CellId, sample: Sample, variants: Sequence[Sample], samples: Sequence[Sample]
) -> Iterator[tuple[str, list[Case]]]:
    """Yield the calls before a sample's call, with a label for each. ``variants``: the sample with other arguments."""
    for layout in _LAYOUTS_BEFORE:
        moved = {s.index: p for s in movable(sample) if not s.written and (p := placed(s, layout, cell.dtype))}
        if moved:
            yield layout, [Case(cell, sample, layout, put(sample, moved))]
    for dtype in [d for d in sample.dtypes if d != cell.dtype][:2]:
        yield dtype, [plainly(cell, dtype, sample)]
    for variant in variants:
        yield variant.name, [plainly(cell, cell.dtype, variant)]
    for variant in [s for s in samples if s.raises and cell.dtype in s.dtypes][:1]:
        yield "error", [plainly(cell, cell.dtype, variant)]
    sizes = [s for s in samples if s.axis == "sizes" and cell.dtype in s.dtypes]
    if sizes:
        yield "sizes", [plainly(cell, cell.dtype, s) for s in sizes[:_SIZES_BEFORE]]


def _of_numbers_alike(cell: CellId, plain: Sequence[Sample]) -> Iterator[Case]:
    """Yield calls after a call with other numbers, which a cache may take for the same if its keys have their texts."""
    for sample in plain:
        after, before = ([_with_floats(sample, n) for n in of] for of in zip(*ALIKE, strict=True))
        if after[0] != sample:
            yield from (_behind(cell, one, other) for one, other in zip(after, before, strict=True))
            return


def _of_large_integers(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yield calls with an integer that a double does not hold, after a call with the integer that it is rounded to."""
    numbers: dict[tuple[int | str, ...], Sample] = {}  # a sample for each argument, by its path
    for sample in samples:
        # In an op without tensors, this number may be the length of the result.
        if any(t.pool for t in sample.tensors):
            numbers = dict.fromkeys(_paths(sample, BEYOND_FLOAT), sample) | numbers
    for path, sample in numbers.items():
        for one, other in ONE_DOUBLE:
            yield _behind(cell, _with_integer(sample, path, one), _with_integer(sample, path, other))


def _of_host_numbers_alike(cell: CellId, samples: Sequence[Sample]) -> Iterator[Case]:
    """Yield one call with a number on the host, after a call with another number that may be taken for it."""
    # An operand with a dtype of its own may be a count.
    operands = [(s, t) for s in samples for t in s.tensors if t.on_host and not t.shape and t.pool and not t.dtype]
    for sample, operand in operands[:1]:
        one, other = (_with_host_number(sample, operand, word) for word in ALIKE_ON_HOST[cell.dtype])
        yield _behind(cell, one, other)


def _behind(cell: CellId, one: Sample, other: Sample) -> Case:
    """Return the case of a sample's call after the call of another sample."""
    return Case(cell, one, f"after={other.name}", put(one, {}), (), (plainly(cell, cell.dtype, other),))


def _paths(sample: Sample, number: int) -> list[tuple[int | str, ...]]:
    """Return the paths of a number among the non-tensor arguments."""
    found: list[tuple[int | str, ...]] = []

    def visit(path: tuple[int | str, ...], arg: Arg) -> Arg:
        if type(arg) is int and arg == number:
            found.append(path)
        return arg

    with_arguments(sample, visit)
    return found


def _with_integer(sample: Sample, path: tuple[int | str, ...], number: int) -> Sample:
    changed = with_arguments(sample, lambda at, arg: number if at == path else arg)
    return replace(changed, name=f"{sample.name}.then={number}")


def _with_host_number(sample: Sample, slot: TensorSlot, word: str) -> Sample:
    slots = [replace(s, fill=f"hard/all/{word}", source=1) if s == slot else s for s in sample.tensors]
    return replace(with_tensors(sample, slots), name=f"{sample.name}.{slot.name}={word}")


def _with_floats(sample: Sample, number: float) -> Sample:
    """Return the sample with a number for each float among its arguments; the sample itself if it has none."""

    def changed(_: object, arg: Arg) -> Arg:
        return number if type(arg) is float else arg

    found = with_arguments(sample, changed)
    return sample if found == sample else replace(found, name=f"{sample.name}.floats={number!r}")


def _variants_of(sample: Sample, variants: Sequence[Sample]) -> list[Sample]:
    """Return the variants of a sample: one for each argument, then another one for each, and so on.

    Variants with one other argument come before those with several. A cache may lack any one argument in its keys.
    """
    taken: dict[str, int] = {}  # argument -> number of variants so far
    ranked = []
    for variant in variants:
        if variant.name.startswith(f"{sample.name}."):
            argument, _, more = variant.name[len(sample.name) + 1 :].partition("=")
            taken[argument] = taken.get(argument, 0) + 1
            ranked.append(("=" in more, taken[argument], variant))
    return [variant for *_, variant in sorted(ranked, key=lambda each: each[:2])]
