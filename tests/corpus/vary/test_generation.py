"""Samples that are generated in children that may die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary.generation import generate
from conformance.corpus.vary.trial import Trials

CORPUS = reader.load(generated=False)


def sample() -> Sample:
    return next(s for s in CORPUS.samples("neg") if s.base == "float32" and not s.raises)


def test_an_overload_whose_child_dies_is_tried_again_call_by_call() -> None:
    def make(_: str, trials: Trials) -> Iterator[Sample]:
        if not trials.isolated:
            os.kill(os.getpid(), signal.SIGSEGV)
        yield sample()

    assert list(generate(["neg"], CORPUS, make, 1)) == [("neg", [sample()])]


def test_an_overload_of_which_the_generator_raises_an_error_has_none_and_the_others_have_theirs() -> None:
    def make(overload: str, trials: Trials) -> Iterator[Sample]:
        if overload != "neg":
            raise ValueError(trials)
        yield sample()

    assert dict(generate(["abs", "neg"], CORPUS, make, 1)) == {"abs": None, "neg": [sample()]}


def test_what_libraries_print_while_samples_are_generated_stays_off_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def make(overload: str, trials: Trials) -> list[Sample]:
        del trials
        for printed in (1, 2):
            os.write(printed, b"oneMKL ERROR: Parameter 4 was incorrect\n")
        if overload == "broken":
            raise ValueError("an error of our own")
        return [sample()]

    assert {name: bool(found) for name, found in generate(["neg", "broken"], CORPUS, make, 1)} == {
        "neg": True,
        "broken": False,
    }
    out, err = capfd.readouterr()
    assert "an error of our own" in err
    assert "oneMKL" not in out + err
