"""Samples that a generator of the corpus makes of an overload's recorded ones."""

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
    """The recorded samples."""
    return reader.load(generated=False)


@cache
def made_by(generate: Generate, overload: str, most: int = trial.MOST_ELEMENTS) -> tuple[Sample, ...]:
    """The samples of an overload that ``generate`` makes, with trials that no clock limits.

    ``most``: elements of a call that is tried.
    """
    (known,) = (o for o in inventory("CPU") if o.name == overload)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "MOST_ELEMENTS", most)
        return tuple(generate(known, corpus().samples(overload), Trials(corpus(), timed=False), corpus()))


def failing(right: Callable[..., Any], wrong: Callable[..., Any], samples: Iterable[Sample]) -> list[str]:
    """The samples whose case an op does not pass that is ``wrong`` on the device, by name; in their first dtype."""
    found = []
    for one in samples:
        cell = CellId("misc", one.overload, one.dtypes[0], one.axis or "contiguous")
        (case,) = cases(cell, [replace(one, args=(*one.args, DeviceArg()))])
        result = judge(right, wrong, case, facts(one.overload), values=corpus().value)
        found += [one.name] if result.mismatches else []
    return found
