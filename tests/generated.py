"""Samples that a generator of the corpus makes from the recorded samples of an overload."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from conformance.corpus import reader
from conformance.corpus.model import DeviceArg, Sample
from conformance.corpus.reader import Corpus
from conformance.corpus.vary import trial
from conformance.corpus.vary.trial import Trials
from conformance.inventory import inventory
from conformance.ops import facts
from conformance.plan.cases import cases
from conformance.vocabulary import CellId
from tests.two_sides import judge

Generate = Callable[..., Iterable[Sample]]


def corpus() -> Corpus:
    """Return the corpus without its generated samples."""
    return reader.load(generated=False)


@cache
def made_by(generate: Generate, overload: str, most: int = trial.MOST_ELEMENTS) -> tuple[Sample, ...]:
    """Return the samples that ``generate`` makes for an overload. Its trials have no time limit.

    ``most``: the limit on the elements of a call that is tried.
    """
    (known,) = (o for o in inventory("CPU") if o.name == overload)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "MOST_ELEMENTS", most)
        return tuple(generate(known, corpus().samples(overload), Trials(corpus(), timed=False), corpus()))


def failing(right: Callable[..., Any], wrong: Callable[..., Any], samples: Iterable[Sample]) -> list[str]:
    """Return the names of the samples for which a device with the ``wrong`` op fails, each in its first dtype."""
    found = []
    for one in samples:
        cell = CellId("misc", one.overload, one.dtypes[0], one.axis or "contiguous")
        (case,) = cases(cell, [replace(one, args=(*one.args, DeviceArg()))])
        result = judge(right, wrong, case, facts(one.overload), values=corpus().value)
        found += [one.name] if result.mismatches else []
    return found
