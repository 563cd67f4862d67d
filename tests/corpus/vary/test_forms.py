"""Samples of an overload that are made from the samples of its other form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from conformance.corpus.model import DeviceArg, Sample
from conformance.corpus.vary.forms import MOST, generate
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, inventory
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.generated import corpus
from tests.two_sides import judge


def known() -> dict[str, Overload]:
    return {o.name: o for o in inventory("CPU")}


def large(overload: str, size: int = 4097) -> Sample:
    """Return a generated sample of one long row with ``size`` elements."""
    usable = [s for s in corpus().recorded(overload) if s.base == "float32" and not s.raises]
    source = max(usable, key=lambda s: s.tensors[0].numel)
    slots = tuple(replace(t, shape=(size,), fill="jitter", source=t.numel) if t.pool else t for t in source.tensors)
    args = tuple(slots[a.index] if a in source.tensors else a for a in source.args)
    return replace(source, name=f"{source.name}.self.0={size}", axis="sizes", args=args, tensors=slots)


def made(overload: str, of: dict[str, list[Sample]]) -> list[Sample]:
    def samples_of(name: str) -> list[Sample]:
        return [*corpus().recorded(name), *of.get(name, [])]

    trials = Trials(corpus(), timed=False)
    return list(generate(known()[overload], samples_of(overload), list(known().values()), samples_of, trials))


def test_a_size_of_the_functional_form_is_tried_with_out_and_in_place() -> None:
    of = {"neg": [large("neg")]}
    (out,) = made("neg.out", of)
    assert (out.overload, out.axis, out.tensors[0].shape) == ("neg.out", "sizes", (4097,))
    assert [(t.name, t.written, t.pool) for t in out.tensors if t.name == "out"] == [("out", True, "")]
    (in_place,) = made("neg_", of)
    assert [(t.name, t.written) for t in in_place.tensors] == [("self", True)]


def test_a_size_of_an_out_form_is_tried_in_the_functional_form() -> None:
    (out,) = made("neg.out", {"neg": [large("neg")]})
    assert not made("neg", {"neg.out": [out]})  # the sample was made from this form
    (functional,) = made("neg", {"neg.out": [replace(out, name="opinfo.neg.out")]})
    assert [(t.name, t.written) for t in functional.tensors] == [("self", False)]
    assert not dict(functional.kwargs)


def test_what_the_form_has_itself_is_not_tried_again() -> None:
    (out,) = made("neg.out", {"neg": [large("neg")]})
    assert not made("neg.out", {"neg": [large("neg")], "neg.out": [out]})
    assert not made("neg.out", {"neg": []})


def test_a_form_gets_few_samples_the_largest_first() -> None:
    many = [replace(large("neg", 2**n + 1), name=f"opinfo.neg.{n}") for n in range(3, 19)]
    found = made("neg.out", {"neg": many})
    assert 0 < len(found) <= MOST
    assert found[0].tensors[0].shape == (2**18 + 1,)


def test_a_sample_larger_than_all_others_is_tried_too() -> None:
    (found,) = made("neg.out", {"neg": [replace(large("neg", 500_001), axis="large")]})
    assert (found.axis, found.tensors[0].numel) == ("large", 500_001)


def test_an_out_form_that_is_wrong_in_large_tensors_is_found() -> None:
    def right(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return torch.neg(x, out=out)

    def wrong(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        torch.neg(x, out=out)
        out[4096:] = 0
        return out

    def failing(samples: list[Sample], of: object) -> Iterator[str]:
        for one in samples:
            sample = replace(one, args=(*one.args, DeviceArg()))
            (case,) = cases(CellId("misc", "neg.out", "float32", one.axis or "contiguous"), [sample])
            if judge(right, of, case, values=corpus().value).mismatches:  # type: ignore[arg-type]  # either op
                yield one.name

    recorded = [s for s in corpus().recorded("neg.out") if "float32" in s.dtypes and not s.raises][:3]
    found = made("neg.out", {"neg": [large("neg")]})
    assert not list(failing(recorded, wrong))
    assert list(failing(found, wrong)) == [s.name for s in found]
    assert not list(failing(found, right))
