"""Trials on CPU in children that may die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count

import pytest
import torch

from conformance.corpus import reader
from conformance.corpus.model import Sample
from conformance.corpus.vary import trial
from conformance.corpus.vary.trial import Trials, generate

CORPUS = reader.load(generated=False)


def sample() -> Sample:
    return next(s for s in CORPUS.samples("neg") if s.base == "float32" and not s.raises)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def test_an_overload_whose_child_dies_is_tried_again_call_by_call() -> None:
    def make(_: str, trials: Trials) -> Iterator[Sample]:
        if not trials.isolated:
            die()
        yield sample()

    assert list(generate(["neg"], CORPUS, make, 1)) == [("neg", [sample()])]


def test_a_call_that_kills_its_own_child_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(CORPUS, isolated=True, timed=False)
    assert trials.run(sample(), "float32")
    monkeypatch.setattr(trial, "call_of", lambda _: die)
    assert trials.run(sample(), "float32") is None
    assert not trials.raises(sample(), "float32")


def test_a_call_that_takes_too_long_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(trial, "call_of", lambda _: spin)
    assert Trials(CORPUS, isolated=True).run(sample(), "float32") is None


def test_without_a_limit_of_time_a_slow_call_is_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST_SECONDS", -1)
    assert Trials(CORPUS).run(sample(), "float32") is None
    assert Trials(CORPUS, timed=False).run(sample(), "float32")


def test_an_error_of_the_generator_itself_is_raised() -> None:
    def make(_: str, trials: Trials) -> Iterator[Sample]:
        raise ValueError(trials)

    with pytest.raises(RuntimeError, match="samples of neg"):
        list(generate(["neg"], CORPUS, make, 1))


def test_a_call_that_reads_memory_which_nobody_wrote_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def leftovers(*_: object) -> torch.Tensor:
        return torch.empty(1 << 12)

    trials = Trials(CORPUS, timed=False)
    assert trials.run(sample(), "float32")
    monkeypatch.setattr(trial, "call_of", lambda _: leftovers)
    assert trials.run(sample(), "float32") is None


def test_a_call_whose_second_result_differs_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()
    monkeypatch.setattr(trial, "call_of", lambda _: lambda x: torch.full((3,), next(calls)))
    assert Trials(CORPUS, timed=False).run(sample(), "float32") is None


def test_a_random_call_is_seeded_and_so_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "call_of", lambda _: torch.rand_like)
    assert Trials(CORPUS, timed=False).run(sample(), "float32")


def test_a_result_of_one_element_is_compared_whatever_its_stride(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "call_of", lambda _: lambda x: torch.full((4,), 1.0)[::2][:1])
    assert Trials(CORPUS, timed=False).run(sample(), "float32")


def test_what_onednn_refuses_is_a_sample_if_cpu_takes_it_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        if torch.backends.mkldnn.enabled:
            raise RuntimeError("not this dtype")
        return x + 1

    monkeypatch.setattr(trial, "call_of", lambda _: refuses)
    assert Trials(CORPUS, timed=False).run(sample(), "float32")
    assert not Trials(CORPUS, timed=False).raises(sample(), "float32")
