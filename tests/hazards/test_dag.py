"""Random programs: their data flow, and the reduction of a failing program."""

from __future__ import annotations

import pytest
import torch

from conformance.hazards import dag
from conformance.hazards.dag import Kind, Program, Step


def combine(stream: int, target: int, *sources: int) -> Step:
    return Step(Kind.COMBINE, stream, target, sources, 1)


def download(stream: int, target: int) -> Step:
    return Step(Kind.DOWNLOAD, stream, target, (), 0)


def test_a_seed_gives_one_program() -> None:
    assert dag.draw(5) == dag.draw(5) != dag.draw(6)
    assert len(dag.draw(5)) == dag.STEPS


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ((combine(0, 0, 1, 1), combine(1, 2, 0, 3)), [set(), {0}]),  # reads what was written
        ((combine(0, 0, 1, 1), combine(0, 2, 0, 3)), [set(), set()]),  # on the same stream
        ((combine(0, 0, 1, 2), combine(1, 1, 3, 3)), [set(), {0}]),  # overwrites what is read
        ((combine(0, 0, 1, 1), combine(1, 0, 1, 1)), [set(), {0}]),  # overwrites what was written
        ((combine(0, 0, 1, 2), Step(Kind.RENEW, 1, 1, (), 5)), [set(), set()]),  # the old memory lives on
        ((Step(Kind.RENEW, 1, 1, (), 5), combine(0, 0, 1, 2)), [set(), {0}]),
        ((combine(0, 0, 1, 1), combine(1, 2, 3, 3), combine(2, 1, 0, 2)), [set(), set(), {0, 1}]),
        ((combine(0, 0, 1, 1), download(1, 0), combine(2, 0, 3, 3)), [set(), {0}, {0, 1}]),  # the host reads
    ],
)
def test_a_step_waits_for_what_its_data_flow_needs(program: Program, needed: list[set[int]]) -> None:
    assert dag.dependencies(program) == needed


def test_the_expected_values_are_those_of_the_steps_in_order() -> None:
    program = (combine(0, 0, 1, 2), Step(Kind.UPLOAD, 1, 3, (), 50), combine(1, 2, 3, 0), Step(Kind.RENEW, 0, 1, (), 7))
    assert [t.tolist() for t in dag.serial(program, 2)] == [[4.0] * 2, [7.0] * 2, [55.0] * 2, [50.0] * 2]
    assert max(float(t.max()) for seed in range(50) for t in dag.serial(dag.draw(seed), 1)) < dag.PRIME


def test_what_the_host_reads_is_the_value_of_that_moment() -> None:
    program = (combine(0, 0, 1, 2), download(1, 0), combine(1, 0, 0, 3))
    assert [t.tolist() for t in dag.serial(program, 1)] == [[8.0], [1.0], [2.0], [3.0], [4.0]]
    kinds = {step.kind for seed in range(5) for step in dag.draw(seed)}
    assert kinds == set(Kind)


def test_a_failing_program_loses_all_steps_that_it_does_not_need() -> None:
    program = dag.draw(3)
    needed = (program[4], program[17])

    def fails(shorter: Program) -> bool:
        steps = iter(shorter)
        return all(step in steps for step in needed)

    assert dag.shortened(program, fails) == needed


def test_a_missing_dependency_is_named_by_its_two_steps() -> None:
    program = (combine(0, 0, 1, 1), combine(1, 2, 0, 3))
    text = dag.describe(program, [1])
    assert text.splitlines()[0] == (
        "missing dependency: step 1 (`t2 = (t0 + t3 + 1) % 97` on stream 1) did not wait for "
        "step 0 (`t0 = (t1 + t1 + 1) % 97` on stream 0):"
    )
    assert "  0: `t0 = (t1 + t1 + 1) % 97` on stream 0" in text
    assert dag.describe((Step(Kind.UPLOAD, 1, 3, (), 50),), []) == (
        "missing dependency: within step 0 (`t3.copy_(host, non_blocking=True)` on stream 1), between its calls or "
        "their arguments"
    )
    assert dag.describe(program, []).startswith("some dependency among these steps is missing")


def test_values_are_exact_in_float32() -> None:
    assert torch.tensor(float(3 * dag.PRIME)).remainder(dag.PRIME).item() == 0
