"""Samples that a generator of the corpus makes of an overload's recorded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import pytest

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.reader import Corpus
from conformance.corpus.vary import trial
from conformance.corpus.vary.trial import Trials
from conformance.inventory import inventory

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
