"""Samples that CPU refuses for the values of one argument, such as an index out of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from conformance.corpus.model import Sample, TensorSlot
from conformance.corpus.places import label
from conformance.corpus.values import kind_of
from conformance.corpus.vary import arguments
from conformance.corpus.vary.filling import AXIS, Filling, slots_of, with_fills
from conformance.ops import facts

# Values that an op may refuse, by the kind of an argument: below every index and count, below 0, and NaN.
_REFUSED = {"int": ("all/min",), "float": ("all/-inf", "all/nan")}
# Names of arguments that are indices or counts, and more values for these: -1, which a kernel may count from the end,
# in all elements or only in the last one, and a number beyond all sizes.
_INDICES = ("index", "indices", "target", "repeats")
_REFUSED_INDICES = ("all/-1", "all/70001", "last/-1")
_COUNTED_FROM_END = ("all/-1", "last/-1")  # accepted by ops that count a negative index from the end
# Values to try with a long dimension: a kernel may check indices in a separate loop only if there are many of them, or
# if they index few elements.
_REFUSED_IN_LONG = ("last/70001", "last/-1")
_LENGTH = 1031
_BEYOND_16_BITS = 65_603
_WRITTEN = "value"  # depending on the op, CPU refuses a number beyond float16, or writes infinity


class Refused:
    """The samples that make the call of one sample with values that CPU refuses."""

    def __init__(self, filling: Filling) -> None:
        self.refuses_negative = False  # whether CPU refuses an index below 0, once the samples are made
        self.from_end: list[Sample] = []  # samples with a negative index that CPU accepts
        self._of = filling
        self._source = filling.source

    def samples(self) -> Iterator[Sample]:
        """Yield samples that CPU refuses for the values of one argument, such as an index out of bounds.

        An optional argument may be checked against the values first, so CPU must also refuse the values without it. The
        fixed arguments of a random op are tried too: they are fixed because of the draws, and a refused call draws
        nothing.
        """
        kept = () if facts(self._source.overload).random else self._of.fixed
        others = arguments.others(self._source, self._of.schema, pointwise=False)
        absent = [other for other in others if other.value is None and other.formal.name not in self._of.fixed]
        forms = {"": self._source}
        forms |= {f".{o.name}": arguments.replaced(self._source, self._of.schema, o) for o in absent[:1]}
        slots = [s for s in self._source.tensors if s.pool and not s.same_as and s.numel]
        slots = [s for s in slots if s.argument not in kept]
        indices = [s for s in slots if s.argument in _INDICES]
        for slot in slots:
            more = _REFUSED_INDICES if slot.argument in _INDICES else ()
            for value in (*_REFUSED.get(kind_of(slot.dtype or self._source.base), ()), *more):
                found = self._refused_in(forms, slot, value)
                yield from found
                if found and value in _COUNTED_FROM_END:
                    self.refuses_negative = True
                elif value in _COUNTED_FROM_END:
                    name = "." + value.replace("/", ".")
                    self.from_end += self._of.made(self._source, {slot.index: f"hard/{value}"}, name)
        for group, length in product(self._of.groups if indices else (), (_LENGTH, _BEYOND_16_BITS)):
            of = [s for s in indices if length == _LENGTH or s.index in slots_of(group)]
            if of and (long := self._of.lengthened(group, length)):
                form = {f".{label(self._source, group.places)}={length}": long}
                for slot, value in product(of, _REFUSED_IN_LONG):
                    yield from self._refused_in(form, slot, value)

    def _refused_in(self, forms: dict[str, Sample], slot: TensorSlot, value: str) -> list[Sample]:
        """Return a sample of each form of the call with a value in an argument; none if CPU accepts it in a form."""
        found = []
        for more, source in forms.items():
            index = next((s.index for s in source.tensors if s.name == slot.name), None)
            if index is None:
                continue
            sample = with_fills(source, {index: f"hard/{value}"}, "")
            dtypes = tuple(d for d in self._of.dtypes if d != "float16" or slot.argument != _WRITTEN)
            dtypes = tuple(d for d in dtypes if self._of.trials.raises(sample, d))
            if not (dtypes and self._of.trials.run(source, dtypes[0])):
                return []
            name = f"{self._source.name}.hard={slot.name}.{value.removeprefix('all/').replace('/', '.')}{more}.refused"
            found.append(replace(sample, name=name, dtypes=dtypes[:1], axis=AXIS, raises=True))
        return found
