"""The selection of samples: few, ordinary ones first, and diverse."""

from __future__ import annotations

from conformance.corpus.model import Arg, Sample, TensorSlot
from conformance.corpus.select import most_different


def sample(name: str, *shapes: tuple[int, ...], flag: Arg = None) -> Sample:
    slots = tuple(TensorSlot(i, f"t{i}", s, None, written=False, pool="float32") for i, s in enumerate(shapes))
    return Sample(name, "op", "float32", (), (*slots, flag), (), slots)


def names(*samples: Sample, most: int = 3) -> list[str]:
    return [s.name for s in most_different(samples, most)]


def test_an_ordinary_sample_comes_first() -> None:
    assert names(sample("scalar", ()), sample("matrix", (3, 4)), sample("empty", (0, 4)))[0] == "matrix"


def test_of_samples_alike_two_are_enough() -> None:
    assert len(names(*[sample(str(i), (3, 4 + i)) for i in range(5)])) == 2


def test_at_most_one_in_four_selected_samples_is_empty() -> None:
    rows = [sample(str(i), (0, i), flag=i) for i in range(4)] + [sample(f"full{i}", (2, 3), flag=i) for i in range(4)]
    assert sum(not n.startswith("full") for n in names(*rows, most=4)) == 1


def test_the_choice_does_not_depend_on_the_order() -> None:
    rows = [sample(str(i), (3, i), flag=i % 3 == 0) for i in range(1, 9)]
    assert names(*rows) == names(*reversed(rows))
