"""Every op is in exactly one family, and no table names an op that does not exist."""

from __future__ import annotations

import fnmatch

import pytest
import torch

from conformance.corpus.reader import load
from conformance.inventory import inventory
from conformance.ops import facts, families, family_of, own_samples
from conformance.ops.family import Equivalence, operator_of

OVERLOADS = [o.name for o in inventory("CPU")]
OPERATORS = sorted({operator_of(name) for name in OVERLOADS})
of_the_corpus_torch = pytest.mark.skipif(
    torch.__version__.partition("+")[0] != load().torch, reason="the tables are held against the corpus' own torch"
)


def test_no_operator_is_claimed_by_two_families() -> None:
    claimed = {op: [f.name for f in families() if any(fnmatch.fnmatchcase(op, p) for p in f.ops)] for op in OPERATORS}
    assert {op: names for op, names in claimed.items() if len(names) > 1} == {}


@of_the_corpus_torch
def test_every_entry_of_every_table_matches_an_operator() -> None:
    unmatched = [(f.name, p) for f in families() for p in f.ops if not fnmatch.filter(OPERATORS, p)]
    assert unmatched == []


@of_the_corpus_torch
def test_every_exception_to_a_family_matches_one_of_its_own() -> None:
    unmatched = []
    for family in families():
        own = [op for op in OPERATORS if family_of(op) is family]
        overloads = {name for name in OVERLOADS if operator_of(name) in own}
        unmatched += [(family.name, p) for p in family.but if p not in overloads and not fnmatch.filter(own, p)]
    assert unmatched == []


def test_samples_of_our_own_are_kept_with_their_family() -> None:
    assert [(f.name, s.overload) for f, s in own_samples() if facts(s.overload).family != f.name] == []


def test_every_overload_has_facts_and_every_family_has_an_overload() -> None:
    assert {facts(name).family for name in OVERLOADS} == {f.name for f in families()}


def test_the_in_place_form_has_the_facts_of_its_operator() -> None:
    assert facts("masked_fill_.Scalar") == facts("masked_fill.Scalar")
    assert facts("__iand__.Tensor").family == "pointwise_binary"


def test_the_form_with_an_out_argument_has_the_tolerance_of_its_overload() -> None:
    plain = {name: name.removesuffix(".out").removesuffix("_out") for name in OVERLOADS}
    assert (plain["scatter.reduce_out"], plain["scatter_add.out"]) == ("scatter.reduce", "scatter_add")
    assert [name for name in plain if facts(name).tolerance != facts(plain[name]).tolerance] == []


def test_the_most_exact_entry_wins() -> None:
    assert facts("max_pool2d_with_indices").equivalence_of(1) is Equivalence.INDEX_OF_EQUAL
    assert facts("max_pool2d_with_indices_backward").equivalence_of(1) is Equivalence.EQUAL
    assert facts("sort.values_stable").equivalence_of(1) is Equivalence.INDEX_OF_TAKEN
    assert facts("empty.memory_format").equivalence_of(0) is Equivalence.METADATA


def test_an_unknown_operator_is_misc() -> None:
    assert facts("an_op_of_the_future").family == "misc"
