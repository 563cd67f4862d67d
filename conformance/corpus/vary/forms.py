"""Samples of the other forms of an overload: with ``out=``, in place, or with new results.

Each form is recorded and varied separately, from its own samples, and may have its own kernel. So a size, a fill or a
rank that is tried in only one form is tried in the others, too. A private operator with the same arguments, such as
``_stack`` beside ``stack``, counts as a form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.places import with_arguments
from conformance.corpus.vary import largest
from conformance.corpus.vary.arguments import by_name
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import MOST_SECONDS, Trials
from conformance.inventory import Overload, call_of
from conformance.torch_versions import schema_of

MOST = 12  # samples of an overload
# Edges of the classes of a sample's largest size: a warp, a block, a few blocks, and past 65,535 blocks.
_EDGES = (16, 64, 256, 1024, 4096, 16_384, 65_536)
_AXES = ("large", "sizes", "values")  # in order of preference

_FORM = ".form"  # the end of the names of samples that are made from another form's samples

SamplesOf = Callable[[str], Sequence[Sample]]


def generate(
    overload: Overload, own: Sequence[Sample], others: Sequence[Overload], samples_of: SamplesOf, trials: Trials
) -> Iterator[Sample]:
    """Yield samples made from generated samples of the overload's other forms, if no ``own`` sample has their class.

    ``others``: the overloads that may be its forms. Composites have none.
    """
    if overload.is_composite_implicit or not any(map(usable, own)):
        return
    schema = schema_of(call_of(overload.name))
    seen = {_class(sample) for sample in own}
    larger = trials.within(largest.MOST_ELEMENTS, MOST_SECONDS)
    made = 0
    for sample in _wanted(overload, schema, others, samples_of):
        form = _as_form(sample, overload, schema, own)
        if form is None or _class(sample) in seen or made == MOST:
            continue
        seen.add(_class(sample))
        of_axis = larger if sample.axis == largest.AXIS else trials
        ran = {d: found.sample for d in sample.dtypes if (found := of_axis.run(form, d))}
        if ran:
            made += 1
            yield replace(next(iter(ran.values())), name=f"{sample.name}{_FORM}", dtypes=tuple(ran))


def _wanted(overload: Overload, schema: Any, others: Sequence[Overload], samples_of: SamplesOf) -> list[Sample]:
    """Return the generated samples of the other forms that do not raise, by axis, the largest first."""
    found: list[Sample] = []
    for other in others:
        if other.name != overload.name and _operator(other) == _operator(overload):
            of_other = schema_of(call_of(other.name))
            if not other.is_composite_implicit and _inputs(of_other) == _inputs(schema):
                found += [s for s in samples_of(other.name) if s.axis in _AXES and _is_own(s)]
    return sorted(found, key=lambda s: (_AXES.index(s.axis), -_elements(s), s.overload, s.name))


def _is_own(sample: Sample) -> bool:
    """Return whether a sample does not raise, is for every backend, and is not made from another form's sample."""
    return not (sample.raises or sample.own_kernel or sample.name.endswith(_FORM))


def _operator(overload: Overload) -> str:
    """Return the operator's name without the underscores of an in-place form and of a private operator."""
    return overload.base.strip("_")


def _inputs(schema: Any) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]


def _elements(sample: Sample) -> int:
    return max((s.numel for s in sample.tensors if s.pool), default=0)


def _class(sample: Sample) -> tuple[object, ...]:
    """Return a key that is equal for samples that find the same faults: axis, rank, rough sizes, and hard values."""
    given = [s for s in sample.tensors if s.pool]
    size = max((n for s in given for n in s.shape), default=0)
    rank = max((len(s.shape) for s in given), default=0)
    fills = {s.fill.partition("/")[2].partition("/")[0] for s in given if s.fill.startswith("hard")}
    scaled = any(s.fill.startswith("scaled") for s in given)
    magnitude = int(math.log2(_elements(sample) + 1)) // 4
    return sample.axis, rank, sum(size > edge for edge in _EDGES), magnitude, frozenset(fills), scaled


def _as_form(sample: Sample, overload: Overload, schema: Any, own: Sequence[Sample]) -> Sample | None:
    """Return a sample's call as a call of another form, or None if that form needs an argument that is not given.

    The outputs are empty, in the dtypes that they have in an ``own`` sample.
    """
    given = by_name(sample, schema_of(call_of(sample.overload)))
    given |= _outputs(sample, schema, own)
    args: list[Arg] = []
    kwargs: dict[str, Arg] = {}
    for formal in schema.arguments:
        if formal.name not in given:
            if not formal.has_default_value():
                return None
        elif formal.kwarg_only or len(args) < [a.name for a in schema.arguments].index(formal.name):
            kwargs[formal.name] = given[formal.name]
        else:
            args.append(given[formal.name])
    written = {a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write}
    slots: list[TensorSlot] = []

    def numbered(_: tuple[int | str, ...], arg: Arg) -> Arg:
        if isinstance(arg, TensorSlot):
            slots.append(replace(arg, index=len(slots), written=arg.argument in written))
            return slots[-1]
        return arg

    form = replace(sample, overload=overload.name, args=tuple(args), kwargs=tuple(kwargs.items()))
    return replace(with_arguments(form, numbered), tensors=tuple(slots))


def _outputs(sample: Sample, schema: Any, own: Sequence[Sample]) -> dict[str, Arg]:
    """Return empty outputs by their names, in the dtypes that they have in an ``own`` sample of the same base."""
    names = {a.name for a in schema.arguments if a.is_out}
    alike = [s for s in own if usable(s) and s.base == sample.base]
    slots = [s for s in alike[0].tensors if s.name in names] if alike else []
    return {slot.name: replace(slot, shape=(0,), pool="", fill="", source=0) for slot in slots}
