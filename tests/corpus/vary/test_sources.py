"""The samples that are varied, and their dtypes."""

from __future__ import annotations

from conformance.corpus.vary.sources import OTHER_DTYPES, Turns, sources
from tests.generated import corpus


def test_samples_whose_values_are_alike_are_the_last_to_be_varied() -> None:
    (source,) = (s for s in sources(corpus().samples("sum.dim_IntList"), corpus()) if s.base == "int64")
    assert corpus().value(source.tensors[0], "int64").unique().numel() > 1


def test_dtypes_take_turns_after_the_first() -> None:
    turns = Turns(sources(corpus().samples("addmm"), corpus())[0])
    given = []
    for _ in range(9):
        given.append(turns.dtypes())
        turns.taken += 1
    assert {dtypes[0] for dtypes in given} == {turns.first}
    assert len({frozenset(dtypes) for dtypes in given}) == 1
    assert {d for dtypes in given for d in dtypes[1 : 1 + OTHER_DTYPES]} == set(given[0][1:])
    assert {turns.of(str(i)) for i in range(20)} == {(turns.first, other) for other in given[0][1:]}
