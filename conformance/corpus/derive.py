"""Samples of an overload, derived from those of its siblings.

Arguments are taken over by name. The ``out=`` arguments are the results of a call of the functional form.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch

from conformance.corpus.calls import plain_call
from conformance.corpus.drafts import SEED, Drafter, dtype_name, out_formals, with_slots
from conformance.corpus.model import NotStorable, Sample, SampleName
from conformance.corpus.pools import PoolBuilder
from conformance.corpus.siblings import SIBLINGS
from conformance.inventory import Overload, call_of
from conformance.ops import facts
from conformance.torch_versions import schema_of

MOST_SOURCES = 3  # siblings tried for each base

Kept = Mapping[str, Sequence[Sample]]
Live = dict[str, Any]  # argument name -> value


@dataclass
class Deriver:
    """A deriver of samples from the kept samples. Call :meth:`derive` again after its results are validated."""

    overloads: Mapping[str, Overload]
    pools: PoolBuilder
    most: Callable[[Overload], Mapping[str, int]]
    _tried: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def derive(self, kept: Kept) -> list[Sample]:
        """Return samples to validate, for every overload and each base in which it lacks samples with values."""
        families = _families(self.overloads)
        derived: list[Sample] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, overload in self.overloads.items():
                if overload.has_cpu_kernel and overload.has_tensors and not facts(name).cannot:
                    for base, most in self.most(overload).items():
                        if not _with_values(kept, name, base):
                            derived += self._derive_one(overload, base, most, families, kept)
        return derived

    def _derive_one(
        self, target: Overload, base: str, most: int, families: Mapping[str, list[str]], kept: Kept
    ) -> list[Sample]:
        siblings = _siblings(target, base, families, kept)
        if self._tried.get((target.name, base)) == siblings:  # the same siblings would give the same samples
            return []
        self._tried[target.name, base] = siblings
        schema = schema_of(call_of(target))
        found: list[Sample] = []
        for source in (s for sibling in siblings for s in _with_values(kept, sibling, base)):
            if len(found) < most:
                found += self._from(source, target.name, schema)
        return found

    def _from(self, source: Sample, target: str, schema: Any) -> list[Sample]:
        given = self._live(source, source.base if source.base in source.dtypes else source.dtypes[0])
        call = _adapt(given, schema)
        if call is None:
            return []
        origin = f"derived.{SampleName.parse(source.name).label}"
        if not out_formals(schema):
            draft = self._draft(source, target, schema, call, origin)
            return [draft] if draft else []
        return list(self._outs(source, target, schema, call, origin))

    def _outs(self, source: Sample, target: str, schema: Any, call: Live, origin: str) -> Iterator[Sample]:
        """Yield one sample for each group of dtypes in which the same results follow the cell's dtype.

        The other results have the same dtypes in the whole group.
        """
        functional = _functional(target, schema, self.overloads)
        if functional is None:
            return
        groups: dict[tuple[str | None, ...], list[str]] = defaultdict(list)
        made: dict[tuple[str | None, ...], Live] = {}
        for dtype in source.dtypes:
            results = self._results(source, dtype, schema, functional)
            if results is not None:
                own = tuple(dtype_name(r.dtype) for r in tensors_in(list(results.values())))
                key = tuple(None if name == dtype else name for name in own)
                groups[key].append(dtype)
                if dtype == source.base or key not in made:
                    made[key] = results
        for key, dtypes in groups.items():
            yield from self._out_sample(source, target, schema, {**call, **made[key]}, origin, key, tuple(dtypes))

    def _out_sample(
        self, source: Sample, target: str, schema: Any, call: Live, origin: str,
        kinds: tuple[str | None, ...], dtypes: tuple[str, ...],
    ) -> Iterator[Sample]:  # fmt: skip
        draft = self._draft(source, target, schema, call, f"{origin}.out")
        if draft is not None:
            outs = {s.index: kind for s, kind in zip((s for s in draft.tensors if not s.pool), kinds, strict=False)}
            slots = tuple(replace(s, dtype=outs.get(s.index, s.dtype)) for s in draft.tensors)
            yield replace(with_slots(draft, slots), dtypes=dtypes)

    def _results(self, source: Sample, dtype: str, schema: Any, functional: str) -> Live | None:
        """Return the functional form's results by the names of the output arguments, or None if they do not fit."""
        other = schema_of(call_of(functional))
        inputs = {a.name for a in schema.arguments if not a.is_out}
        call = _adapt({k: v for k, v in self._live(source, dtype).items() if k in inputs}, other)
        outs = out_formals(schema)
        if call is None:
            return None
        torch.manual_seed(SEED)
        try:
            args, kwargs = _split(other, call)
            result = call_of(functional)(*args, **kwargs)
        except Exception:  # noqa: BLE001 - a sibling's arguments need not suit
            return None
        if len(outs) == 1:
            named = {outs[0].name: result}
        elif isinstance(result, (tuple, list)) and len(result) == len(outs):
            named = {a.name: r for a, r in zip(outs, result, strict=False)}
        else:
            return None
        lists = {a.name for a in outs if "List" in str(a.type)}
        fits = all(isinstance(r, (list, tuple) if n in lists else torch.Tensor) for n, r in named.items())
        return named if fits else None

    def _live(self, source: Sample, dtype: str) -> Live:
        args, kwargs = plain_call(source, dtype, self.pools)
        formals = [a.name for a in schema_of(call_of(source.overload)).arguments]
        return {**dict(zip(formals, args, strict=False)), **kwargs}

    def _draft(self, source: Sample, target: str, schema: Any, call: Live, origin: str) -> Sample | None:
        fixed = frozenset(s.argument for s in source.tensors if s.dtype == source.base)
        args, kwargs = _split(schema, call)
        try:
            return Drafter(self.pools, source.base, fixed).draft(target, schema, args, kwargs, origin)
        except NotStorable:
            return None


def _with_values(kept: Kept, name: str, base: str) -> list[Sample]:
    return [s for s in kept.get(name, ()) if s.base == base and not s.raises]


def stem(name: str) -> str:
    """Return the common name of siblings: ``masked_fill`` of ``masked_fill_.Scalar``, ``neg`` of ``_foreach_neg_``."""
    base = name.partition(".")[0].removeprefix("_foreach_").strip("_")
    return base.removesuffix("_copy") if base != "_copy" else base


def _families(overloads: Mapping[str, Overload]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name in overloads:
        found[stem(name)].append(name)
    return found


def _siblings(target: Overload, base: str, families: Mapping[str, list[str]], kept: Kept) -> list[str]:
    """Return the closest siblings with samples of the base. Those that share the most argument names come first."""
    names = list(families[stem(target.name)])
    other = SIBLINGS.get(target.base) or SIBLINGS.get(target.base.rstrip("_"))
    if other:
        names += [n for n in families[stem(other)] if n not in names]
    wanted = {a.name for a in schema_of(call_of(target)).arguments}

    def distance(name: str) -> tuple[int, bool, str]:
        own = {a.name for a in schema_of(call_of(name)).arguments}
        return -len(wanted & own), name.partition(".")[0] != target.base, name

    return sorted((n for n in names if _with_values(kept, n, base)), key=distance)[:MOST_SOURCES]


def _functional(target: str, schema: Any, overloads: Mapping[str, Overload]) -> str | None:
    """Return the functional form of the target, or None. It has the same inputs, and perhaps others with defaults."""
    inputs = {a.name: str(a.type) for a in schema.arguments if not a.is_out}
    base = target.partition(".")[0]
    found: list[tuple[int, str]] = []
    by_base = _by_base(tuple(overloads))
    for name in {*by_base.get(base, ()), *by_base.get(base.removesuffix("_out"), ())} - {target}:
        other = schema_of(call_of(name))
        own = {a.name: str(a.type) for a in other.arguments}
        more = [a for a in other.arguments if a.name not in inputs]
        if inputs.items() <= own.items() and all(a.has_default_value() for a in more) and not out_formals(other):
            found.append((len(more), name))
    return min(found)[1] if found else None


@lru_cache(maxsize=1)
def _by_base(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for name in names:
        found[name.partition(".")[0]] += (name,)
    return found


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in nested lists, in order."""
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return [value]


def _adapt(given: Live, schema: Any) -> Live | None:
    """Return values for the schema's inputs by name, or None if a required value is missing."""
    call: Live = {}
    for formal in schema.arguments:
        if formal.is_out:
            continue
        if formal.name in given:
            call[formal.name] = _coerce(given[formal.name], str(formal.type))
        elif not formal.has_default_value():
            if not str(formal.type).startswith("Optional"):
                return None
            call[formal.name] = None
    return call


def _coerce(value: Any, kind: str) -> Any:
    """Convert a value to the schema's type: tensor to number, number to 0-dimensional tensor, tensor to list."""
    if isinstance(value, torch.Tensor):
        if kind in ("number", "Optional[number]", "float", "int") and value.numel():
            return value.view(-1)[0].item()
        return [value, value.clone()] if kind == "List[Tensor]" else value
    if isinstance(value, (bool, int, float)) and kind in ("Tensor", "Optional[Tensor]"):
        return torch.tensor(value)
    return value


def _split(schema: Any, call: Live) -> tuple[list[Any], Live]:
    """Return the positional arguments before the first omitted or keyword-only one, and the rest as keywords."""
    args: list[Any] = []
    for formal in schema.arguments:
        if formal.kwarg_only or formal.name not in call:
            break
        args.append(call[formal.name])
    taken = {a.name for a in schema.arguments[: len(args)]}
    return args, {k: v for k, v in call.items() if k not in taken}
