"""Sequences of several lengths in one batch: packed, padded, and in recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils import rnn

from conformance.scenarios.model import Results, offered, on, scenario, tensors_of

#: Lengths of the sequences of a batch: sorted, unsorted, and all equal.
LENGTHS = {"sorted": [5, 3, 3, 1], "unsorted": [2, 5, 1, 4], "alike": [4, 4]}
_WIDTH = 3


def _batch(device: str, lengths: list[int]) -> torch.Tensor:
    """Return a padded batch with whole numbers: [max(lengths), len(lengths), 3], float32."""
    shape = max(lengths), len(lengths), _WIDTH
    return on(device, torch.arange(float(shape[0] * shape[1] * shape[2])).remainder_(11).view(shape) - 5)


def _sequences(device: str, lengths: list[int]) -> list[torch.Tensor]:
    batch = _batch(device, lengths)
    return [batch[:length, i] for i, length in enumerate(lengths)]


def _packed(x: torch.Tensor, lengths: list[int], *, batch_first: bool = False) -> rnn.PackedSequence:
    return rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=batch_first, enforce_sorted=False)


def _row(*values: Any) -> torch.Tensor:
    """Return the elements of tensors in one row, on the host."""
    return torch.cat([t.detach().cpu().float().flatten() for t in tensors_of(values)])


def parts(packed: rnn.PackedSequence) -> torch.Tensor:
    """Return the parts of a packed sequence in one row. Raises AssertionError if they are on several devices."""
    where = {t.device for t in (packed.data, packed.sorted_indices, packed.unsorted_indices) if t is not None}
    if len(where) > 1:
        raise AssertionError(f"a packed sequence is on {sorted(map(str, where))}")
    return _row(packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def _padded_again(device: str, lengths: list[int], **how: Any) -> torch.Tensor:
    """Return a batch after packing and padding, its lengths, and the gradient of the original batch."""
    x = _batch(device, lengths).requires_grad_()
    padded, found = rnn.pad_packed_sequence(_packed(x, lengths), **how)
    weights = torch.arange(padded.numel(), device=padded.device).view(padded.shape) % 5
    (padded * weights).sum().backward()
    return _row(padded, found, x.grad)


#: Ways to process a batch of sequences with some lengths.
MADE: dict[str, Callable[[str, list[int]], torch.Tensor]] = {
    "packed": lambda device, lengths: parts(_packed(_batch(device, lengths), lengths)),
    "packed_by_batch": lambda device, lengths: parts(
        _packed(_batch(device, lengths).transpose(0, 1), lengths, batch_first=True)
    ),
    "packed_of_a_list": lambda device, lengths: parts(
        rnn.pack_sequence(_sequences(device, lengths), enforce_sorted=False)
    ),
    "padded_again": _padded_again,
    "padded_further": partial(_padded_again, batch_first=True, padding_value=-7.0, total_length=8),
    "padded_of_a_list": lambda device, lengths: _row(rnn.pad_sequence(_sequences(device, lengths), padding_value=2.0)),
    "unpacked": lambda device, lengths: _row(rnn.unpack_sequence(_packed(_batch(device, lengths), lengths))),
    "unpadded": lambda device, lengths: _row(rnn.unpad_sequence(_batch(device, lengths), torch.tensor(lengths))),
    "moved": lambda device, lengths: parts(_packed(_batch("cpu", lengths), lengths).to(device)),
    "brought_back": lambda device, lengths: parts(_packed(_batch(device, lengths), lengths).cpu()),
    "converted": lambda device, lengths: parts(_packed(_batch(device, lengths), lengths).half()),
}


@scenario(exact=True, area="training")
def packed_and_padded(device: str) -> Results:
    """Sequences of several lengths are packed, padded and taken apart on the device as on CPU."""
    return {
        f"{name}.{order}": offered(partial(make, device, lengths))
        for name, make in MADE.items()
        for order, lengths in LENGTHS.items()
    }


LAYERS: dict[str, Callable[[], nn.RNNBase]] = {
    "rnn": lambda: nn.RNN(_WIDTH, 4, num_layers=2),
    "relu": lambda: nn.RNN(_WIDTH, 4, nonlinearity="relu", bidirectional=True),
    "gru": lambda: nn.GRU(_WIDTH, 4, num_layers=2, bidirectional=True),
    "lstm": lambda: nn.LSTM(_WIDTH, 4, num_layers=2, bidirectional=True),
    "projected": lambda: nn.LSTM(_WIDTH, 4, proj_size=2),
    "without_bias": lambda: nn.GRU(_WIDTH, 4, bias=False),
}


def _through(device: str, layer: str, lengths: list[int], begun: bool) -> torch.Tensor:
    """Return the outputs and states of a layer for packed sequences, and the gradients.

    ``begun``: whether the layer gets a state to begin with.
    """
    torch.manual_seed(0)
    module = LAYERS[layer]()
    directions = module.num_layers * (1 + module.bidirectional)
    sizes = [module.proj_size or module.hidden_size, *([module.hidden_size] if layer in ("lstm", "projected") else [])]
    states = [torch.randn(directions, len(lengths), size).to(device) for size in sizes]
    module, x = module.to(device), _batch(device, lengths).requires_grad_()
    given = (tuple(states) if len(states) > 1 else states[0]) if begun else None
    packed, state = module(_packed(x, lengths), given)
    parts(packed)
    padded, _ = rnn.pad_packed_sequence(packed)
    sum((t * t).sum() for t in (padded, *tensors_of(state))).backward()
    return _row(padded, state, x.grad, [parameter.grad for parameter in module.parameters()])


@scenario(slow=True, area="training")
def recurrent_layers_of_packed_sequences(device: str) -> Results:
    """A recurrent layer that takes packed sequences gives CPU's outputs, states and gradients."""
    return {
        f"{layer}.{order}.{'begun' if begun else 'new'}": offered(partial(_through, device, layer, lengths, begun))
        for layer in LAYERS
        for order, lengths in LENGTHS.items()
        for begun in (False, True)
    }
