"""Trials on CPU, in this process and in children that may die."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest
import torch

from conformance.corpus import places, reader
from conformance.corpus.model import Sample
from conformance.corpus.vary import trial
from conformance.corpus.vary.trial import Trials
from conformance.support import guarded_heap
from tests.samples import sample as sample_of
from tests.samples import slot

CORPUS = reader.load(generated=False)
guarded = sys.platform.startswith("linux") and any(map(shutil.which, ("cc", "gcc", "clang")))
MADE = 6  # calls of a trial in a child: three, each repeated over other leftover bytes


def sample() -> Sample:
    return next(s for s in CORPUS.samples("neg") if s.base == "float32" and not s.raises)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def test_a_call_that_kills_its_own_child_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Trials(CORPUS, isolated=True, timed=False).run(sample(), "float32")
    monkeypatch.setattr(trial, "call_of", lambda _: die)
    trials = Trials(CORPUS, isolated=True, timed=False)
    assert trials.run(sample(), "float32") is None
    assert not trials.raises(sample(), "float32")


def test_a_call_that_dies_of_an_earlier_one_is_tried_in_a_fresh_child(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count()

    def second_dies(x: torch.Tensor) -> torch.Tensor:
        if next(calls) >= MADE:
            die()
        return x + 1

    monkeypatch.setattr(trial, "call_of", lambda _: second_dies)
    trials = Trials(CORPUS, isolated=True, timed=False)
    first, second = (trials.run(sample(), "float32") for _ in range(2))
    assert first
    assert second == first


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


def test_a_call_that_is_slow_once_on_a_busy_machine_is_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 1.0, 1.0, 1.0))  # before and after the first call, then the second call
    monkeypatch.setattr(time, "process_time", lambda: next(seconds))
    assert Trials(CORPUS).run(sample(), "float32")


def test_a_call_that_is_slow_in_the_guarded_heap_alone_is_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[bool] = []

    @contextlib.contextmanager
    def watch(_: int) -> Iterator[None]:
        watched.append(True)
        yield
        watched.pop()

    seconds = count()
    monkeypatch.setattr(guarded_heap, "watched", watch)
    monkeypatch.setattr(time, "process_time", lambda: next(seconds) if watched else 0.0)
    assert Trials(CORPUS).run(sample(), "float32")
    monkeypatch.setattr(time, "process_time", lambda: next(seconds))
    assert Trials(CORPUS).run(sample(), "float32") is None


def test_a_call_that_reads_memory_which_nobody_wrote_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def leftovers(*_: object) -> torch.Tensor:
        return torch.empty(1 << 12)

    assert Trials(CORPUS, timed=False).run(sample(), "float32")
    monkeypatch.setattr(trial, "call_of", lambda _: leftovers)
    assert Trials(CORPUS, timed=False).run(sample(), "float32") is None


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


def test_a_call_that_reads_behind_its_argument_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    full = next(s for s in CORPUS.samples("neg") if s.base == "float32" and s.tensors[0].numel)
    assert Trials(CORPUS, timed=False).run(full, "float32")

    def beyond(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor(ctypes.string_at(x.data_ptr(), x.nbytes + 4)[-1] == 0x3F)  # the last byte of 1.0

    monkeypatch.setattr(trial, "call_of", lambda _: beyond)
    assert Trials(CORPUS, timed=False).run(full, "float32") is None


def test_a_call_that_writes_before_its_argument_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    full = next(s for s in CORPUS.samples("neg") if s.base == "float32" and s.tensors[0].numel)

    def before(x: torch.Tensor) -> torch.Tensor:
        if x.storage_offset():  # without an offset, it would damage this process
            torch.as_strided(x, (1,), (1,), x.storage_offset() - 1).fill_(5.0)
        return x + 1

    monkeypatch.setattr(trial, "call_of", lambda _: before)
    assert Trials(CORPUS, timed=False).run(full, "float32") is None


@pytest.mark.forked
@pytest.mark.parametrize("isolated", [False, True])
def test_an_index_that_leaves_a_dimension_reads_the_gaps_of_strided_arguments(isolated: bool) -> None:
    trials = Trials(CORPUS, isolated=isolated, timed=False)
    sound = next(s for s in CORPUS.samples("_ctc_loss") if s.name == "own.loss.one_shorter.213aa6a8")
    log_probs, targets = sound.tensors
    beyond = replace(targets, fill="below/9", source=targets.numel)
    many = replace(log_probs, shape=(9, *log_probs.shape[1:]), fill="jitter", source=log_probs.numel)
    assert not trials.reads_gaps(sound, "float32")
    assert trials.reads_gaps(places.with_tensors(sound, [many, beyond]), "float32")


def test_a_size_that_cpu_does_not_compare_with_another_reads_the_gaps_of_strided_arguments() -> None:
    trials = Trials(CORPUS, isolated=False, timed=False)
    sound = next(s for s in CORPUS.recorded("grid_sampler_3d_backward.out") if s.tensors[0].numel)
    gradient, *others = sound.tensors
    turned = replace(gradient, shape=gradient.shape[::-1])
    assert not trials.reads_gaps(sound, "float32")
    assert trials.reads_gaps(places.with_tensors(sound, [turned, *others]), "float32")


# CPU counts the occurrences of each index in an array of its own, with one element per weight.
COUNTS_BEHIND = """
from dataclasses import replace
from conformance.corpus import reader
from conformance.corpus.vary.trial import Trials
from conformance.support import guarded_heap
assert guarded_heap.restart()
corpus = reader.load(generated=False)
of = {s.name: s for s in corpus.samples("embedding_dense_backward")}
sound = of["opinfo.nn.functional.embedding.backward.7d4eb576"]
indices = sound.args[1]
trials = Trials(corpus, isolated=True, timed=False)
for weights in (10, 0):
    sample = replace(sound, args=(sound.args[0], indices, weights, -1, True))
    print(trials.run(sample, "float32") is not None)
"""


@pytest.mark.skipif(not guarded, reason="the guarded heap needs Linux and a C compiler")
def test_a_call_in_which_cpu_writes_behind_a_block_of_its_own_is_no_sample() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTS_BEHIND], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\nFalse\n"), done.stderr


@pytest.mark.forked
def test_a_child_is_asked_about_a_call_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(CORPUS, isolated=True, timed=False)
    assert trials.run(sample(), "float32")

    def ask(*_: object) -> None:
        raise AssertionError("the child was asked")

    monkeypatch.setattr(Trials, "_answered", ask)
    assert trials.run(replace(sample(), name="another", axis="sizes"), "float32")
    with pytest.raises(AssertionError, match="was asked"):
        trials.run(sample(), "float64")


def test_a_missing_kernel_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(error: Exception) -> None:
        def call(*_: object) -> None:
            raise error

        monkeypatch.setattr(trial, "call_of", lambda _: call)

    def trials() -> Trials:  # new trials, which remember no call
        return Trials(CORPUS, timed=False)

    raising(RuntimeError("\"neg\" not implemented for 'Half'"))
    assert not trials().refuses(sample(), "float32")
    raising(RuntimeError("expected scalar type Long but found Int"))
    assert not trials().refuses(sample(), "float32")
    raising(NotImplementedError("no kernel for Meta"))
    assert not trials().raises_without_memory(sample(), "float32")
    raising(RuntimeError("expected a vector"))
    assert trials().refuses(sample(), "float32")
    assert trials().raises_without_memory(sample(), "float32")


def test_a_call_is_made_once_under_whatever_name(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = Trials(CORPUS, timed=False)
    first = trials.run(sample(), "float32")
    monkeypatch.setattr(trial, "call_of", None)
    again = trials.run(replace(sample(), name="other", axis="sizes"), "float32")
    assert first
    assert again
    assert (again.sample.name, again.shapes) == ("other", first.shapes)


def test_a_product_that_is_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (slot(i, name, (65537, 2)) for i, name in enumerate(("input", "weight")))
    product = sample_of("linear", one, other)
    monkeypatch.setattr(Trials, "_call", None)
    assert Trials(CORPUS, timed=False).run(product, "float32") is None
