"""The draws of one side, in the forms that the rules need."""

from __future__ import annotations

import torch

from conformance.judging.draws import Draws, have_one_shape


def test_draws_are_constant_until_a_call_gives_others() -> None:
    same = [torch.tensor([1, 2]), torch.tensor([1, 2])]
    assert Draws(same).are_constant
    assert len(Draws(same).once()) == 1
    draws = Draws(same)
    draws.add(torch.tensor([1, 3]))
    assert not draws.are_constant
    assert draws.once() is draws


def test_a_call_that_is_added_is_a_row_of_the_matrix() -> None:
    draws = Draws([torch.tensor([True, False])])
    assert draws.matrix.tolist() == [[1.0, 0.0]]
    draws.add(torch.tensor([False, False]))
    assert draws.matrix.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert draws.joined().tolist() == [1.0, 0.0, 0.0, 0.0]


def test_complex_draws_are_pairs_and_keep_their_shape() -> None:
    draws = Draws([torch.tensor([1 + 2j, 3 - 4j]).conj()])
    assert draws.matrix.tolist() == [[1.0, -2.0, 3.0, 4.0]]
    assert (draws.shape, draws.dtype) == (torch.Size([2]), torch.complex64)


def test_results_of_several_shapes_have_no_shape() -> None:
    one, several = Draws([torch.ones(2), torch.zeros(2)]), Draws([torch.ones(2), torch.zeros(3)])
    assert several.shape is None
    assert have_one_shape(one, one)
    assert not have_one_shape(one, several)
    assert not have_one_shape(several, one)
    assert not have_one_shape(one, Draws([torch.ones(3)]))
