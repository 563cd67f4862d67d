"""Whether a call computes each result element from the argument elements at the same position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from conformance.corpus.fills import mixed
from conformance.corpus.vary.elementwise import are_copies, is_elementwise

SHAPE = (6, 7)

Op = Callable[..., torch.Tensor]


def values(shape: Sequence[int], seed: int) -> torch.Tensor:
    return (mixed(torch.Size(shape).numel(), seed).double() / 2**30 - 2).float().view(*shape)


def found(op: Op, *shapes: tuple[int, ...]) -> bool | None:
    tensors = [values(shape, seed) for seed, shape in enumerate(shapes)]
    return is_elementwise(lambda given: [op(*given)], tensors, range(len(tensors)))


@pytest.mark.parametrize("op", [torch.Tensor.tanh_, torch.sign, lambda x: (x > 0.5).double()])
def test_a_function_of_each_element_is_elementwise(op: Op) -> None:
    assert found(op, SHAPE) is True


def test_a_function_of_the_same_elements_of_two_arguments_is_elementwise() -> None:
    assert found(lambda x, y: x * y.exp(), SHAPE, SHAPE) is True


def test_an_output_is_not_an_argument() -> None:
    tensors = [values(SHAPE, 0), torch.empty(0)]
    assert is_elementwise(lambda given: [torch.neg(given[0], out=given[1])], tensors, [0]) is True


@pytest.mark.parametrize("op", [torch.tril, torch.Tensor.exponential_, lambda x: x.softmax(-1), lambda x: x.flip(0)])
def test_an_op_that_reads_positions_or_other_elements_is_not(op: Op) -> None:
    assert found(op, SHAPE) is False


def test_a_result_that_depends_on_one_other_element_is_not_elementwise() -> None:
    def op(x: torch.Tensor) -> torch.Tensor:
        result = x.exp()
        result[5, 6] += x[0, 0]
        return result

    assert found(op, SHAPE) is False


@pytest.mark.parametrize("op", [torch.sum, torch.mean, torch.zeros_like])
def test_other_shapes_and_constants_tell_nothing(op: Op) -> None:
    assert found(op, SHAPE) is None


def test_a_reduction_of_single_elements_tells_nothing() -> None:
    assert found(lambda x: 2 * x.sum(1, keepdim=True), (6, 1)) is None


def test_too_few_elements_tell_nothing() -> None:
    assert found(torch.exp, (3,)) is None


def test_arguments_of_different_shapes_tell_nothing() -> None:
    assert found(lambda x, y: x * y, SHAPE, SHAPE[1:]) is None


@pytest.mark.parametrize(("op", "copies"), [(torch.clone, True), (lambda x: x + 0, True), (torch.neg, False)])
def test_results_are_copies_if_each_equals_an_argument(op: Op, copies: bool) -> None:
    tensor = torch.tensor([-0.0, 1.5, torch.nan])
    assert are_copies(lambda given: [op(*given)], [tensor], [0]) is copies


def test_an_in_place_result_is_compared_with_the_argument_before_the_call() -> None:
    assert not are_copies(lambda given: [given[0].neg_()], [values(SHAPE, 0)], [0])
