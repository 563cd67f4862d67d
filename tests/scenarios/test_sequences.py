"""Sequences of several lengths: a lost order, end or state is found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils import rnn

from conformance.scenarios import sequences
from conformance.scenarios.model import Program
from tests.scenarios.altered import different

pytestmark = pytest.mark.forked  # they run `backward`

PROGRAMS = (sequences.packed_and_padded, sequences.recurrent_layers_of_packed_sequences)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same_results_again_whatever_is_drawn(program: Program) -> None:
    assert different(program, lambda: None) == set()


def test_sequences_that_stay_in_the_order_of_their_lengths_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pad = rnn.pad_packed_sequence

    def sorted_(packed: rnn.PackedSequence, *given: Any, **named: Any) -> Any:
        return pad(rnn.PackedSequence(packed.data, packed.batch_sizes), *given, **named)

    found = different(sequences.packed_and_padded, lambda: monkeypatch.setattr(rnn, "pad_packed_sequence", sorted_))
    assert found == {f"{name}.unsorted" for name in ("padded_again", "padded_further", "unpacked")}


def test_a_layer_that_ignores_where_sequences_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = rnn.pack_padded_sequence

    def whole(x: torch.Tensor, lengths: torch.Tensor, **named: Any) -> Any:
        return pack(x, lengths.clamp(min=2) if len(lengths) == 4 else lengths, **named)

    found = different(
        sequences.recurrent_layers_of_packed_sequences,
        lambda: monkeypatch.setattr(rnn, "pack_padded_sequence", whole),
    )
    assert found == {f"{layer}.{order}.{state}" for layer in sequences.LAYERS for order in ("sorted", "unsorted")
                     for state in ("begun", "new")}  # fmt: skip


def test_an_order_that_is_elsewhere_is_an_error() -> None:
    packed = rnn.pack_padded_sequence(torch.ones(2, 2, 3), torch.tensor([1, 2]), enforce_sorted=False)
    order = packed.sorted_indices.to("meta")
    with pytest.raises(AssertionError, match=r"a packed sequence is on .*meta"):
        sequences.parts(rnn.PackedSequence(packed.data, packed.batch_sizes, order, packed.unsorted_indices))
