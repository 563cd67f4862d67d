"""The comparison in a scenario's script: it finds the differences that the suite finds."""

from __future__ import annotations

import pytest
import torch

from conformance.explain import both_runs
from conformance.judging import compare

NAN = float("nan")


@pytest.mark.parametrize(
    ("cpu", "device"),
    [([0.0, 1.0], [-0.0, 1.0]), ([0.0, 1.0], [0.0, 1.0]), ([NAN, 1.0], [NAN, 1.0]), ([NAN, 1.0], [1.0, 1.0]),
     ([1, 2], [1, 3]), ([True, False], [True, False]), ([1 + 2j, complex(NAN, 0)], [1 + 2j, complex(NAN, 0)])],
)  # fmt: skip
def test_exact_results_differ_where_the_suite_says_so(cpu: list[complex], device: list[complex]) -> None:
    theirs, ours = torch.tensor(cpu), torch.tensor(device)
    said = both_runs.difference(theirs, ours, exact=True, bound=0.0)
    assert bool(said) == (compare.exact(theirs, ours, "result") is not None)
