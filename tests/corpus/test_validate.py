"""Validation of samples: their dtypes, and samples that crash."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch

from conformance.corpus import validate as module
from conformance.corpus.drafts import Drafter
from conformance.corpus.model import Sample
from conformance.corpus.pools import PoolBuilder
from conformance.inventory import call_of
from conformance.torch_versions import schema_of


def draft(pools: PoolBuilder, overload: str, *args: Any, base: str = "float32") -> Sample:
    return Drafter(pools, base).draft(overload, schema_of(call_of(overload)), args, {}, "own.test")


def test_dtypes_are_those_the_cpu_runs() -> None:
    pools = PoolBuilder()
    matrix = torch.rand(3, 3)
    samples = [draft(pools, "bitwise_not", matrix), draft(pools, "linalg_cholesky_ex", matrix)]
    valid, died = module.validate(samples, pools)
    assert [(s.overload, s.dtypes) for s in valid] == [("linalg_cholesky_ex", ("float32", "float64"))]
    assert died == []


def test_a_sample_that_kills_its_process_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pools = PoolBuilder()

    def deadly(overload: str) -> Any:
        return (lambda *_: os.kill(os.getpid(), signal.SIGSEGV)) if overload == "neg" else call_of(overload)

    monkeypatch.setattr("conformance.corpus.validate.call_of", deadly)
    samples = [draft(pools, op, torch.tensor([True]), base="bool") for op in ("bitwise_not", "neg", "logical_not")]
    valid, died = module.validate(samples, pools)
    assert [s.overload for s in valid] == ["bitwise_not", "logical_not"]
    assert [(d.sample.overload, d.dtype, d.how) for d in died] == [("neg", "bool", "SIGSEGV")]


def test_a_result_that_no_one_can_compare_does_not_count() -> None:
    assert not module.readable(torch.eye(2).to_sparse())
    assert module.readable([torch.eye(2), 3, None])
