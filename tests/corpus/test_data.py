"""The pinned corpus: its coverage, and that its samples run."""

from __future__ import annotations

import pytest
import torch

from conformance.corpus.build import describe, reason
from conformance.corpus.calls import plain_call
from conformance.corpus.reader import DATA, load
from conformance.corpus.record import LISTS, MOST_ELEMENTS
from conformance.inventory import call_of, inventory
from conformance.torch_versions import without_onednn

CORPUS = load()
of_its_torch = pytest.mark.skipif(
    torch.__version__.partition("+")[0] != CORPUS.torch, reason="counted on its own torch"
)


@of_its_torch
def test_reaches_95_percent_of_the_targets_and_says_why_not_the_rest() -> None:
    targets = {o.name for o in inventory("CPU") if o.is_target}
    reached = {n for n in targets if any(not s.raises for s in CORPUS.samples(n))}
    assert len(reached) >= 0.95 * len(targets)
    assert targets - reached <= CORPUS.reasons.keys()
    assert not [n for n in targets - reached if CORPUS.reasons[n].startswith("no sample suits it")]


@of_its_torch
def test_every_overload_has_samples_or_a_reason() -> None:
    names = {o.name for o in inventory("CPU")}
    assert names <= set(CORPUS.overloads) | CORPUS.reasons.keys()


def test_is_small() -> None:
    assert sum(f.stat().st_size for f in DATA.iterdir()) < 8_000_000


def test_recorded_samples_have_few_elements() -> None:
    samples = [s for o in CORPUS.overloads for s in CORPUS.samples(o) if s.name.startswith("opinfo.")]
    recorded = [
        s
        for s in samples
        if not s.axis and not any(f".{v}_out." in s.name for v in ("empty", "larger", "wider", "unsafe"))
    ]
    assert max(sum(t.numel for t in s.tensors) for s in recorded) <= MOST_ELEMENTS
    lists = [s for s in CORPUS.samples("_foreach_add.List") if not s.axis]
    assert max(t.shape for s in lists for t in s.tensors) == (max(LISTS), max(LISTS))


@of_its_torch
def test_the_corpus_has_the_schemas_of_the_dispatcher() -> None:
    live = {o.name: o.schema for o in inventory("CPU")}
    assert {n: s for n, s in CORPUS.schemas.items() if live[n] != s} == {}


@pytest.mark.parametrize("overload", ["masked_fill_.Scalar", "convolution", "_foreach_add.List", "sort.values", "cat"])
def test_samples_of_the_corpus_run_or_raise_as_recorded(overload: str) -> None:
    for sample in CORPUS.samples(overload):
        args, kwargs = plain_call(sample, sample.dtypes[0], CORPUS)
        with without_onednn():  # oneDNN refuses some pairs of dtypes on some processors
            if sample.raises:
                with pytest.raises((RuntimeError, IndexError, TypeError, ValueError, NotImplementedError)):
                    call_of(overload)(*args, **kwargs)
            else:
                call_of(overload)(*args, **kwargs)


def test_a_sample_can_be_described() -> None:
    row = next(r for r in describe(CORPUS, "masked_fill_.Scalar") if "own.masking.causal" in r["sample"])
    assert row["call"] == "self[2, 3, 4, 4], mask[2, 1, 4, 4] bool, -3.0"
    assert row["dtypes"] == "float32 float64 float16 bfloat16"
    assert row["expects"] == "values"


@pytest.mark.parametrize(
    ("overload", "why"),
    [
        ("quantized_lstm.input", "takes or makes a quantized tensor"),
        ("_flash_attention_forward", "the CPU has no kernel for it, so there is nothing to compare with"),
        ("promote_types", "neither takes nor gives a tensor"),
    ],
)
def test_an_unreached_overload_says_why(overload: str, why: str) -> None:
    assert reason(next(o for o in inventory("CPU") if o.name == overload)) == why
