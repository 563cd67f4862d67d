"""Recurrent cells and layers."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Family, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"}
_X, _H = T((3, 2, 4)), T((1, 2, 5))
_WEIGHTS = (T((20, 4)), T((20, 5)), T((20,)), T((20,)))
_LSTM = (_X, *_WEIGHTS, _H, _H)

FAMILY = Family(
    "rnn",
    words(
        "_cudnn_init_dropout_state _cudnn_rnn* _use_cudnn_rnn_flatten_weight gru gru_cell lstm lstm_cell "
        "lstm_mps_backward _lstm_mps miopen_rnn* mkldnn_rnn_layer* _pack_padded_sequence* "
        "_pad_packed_sequence rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell _thnn_*"
    ),
    {"tolerance": Tolerance(16.0, 4.0, Accumulation.INNER)},
    but={
        "_cudnn_*": _OTHER_DEVICE,
        "*lstm_mps*": _OTHER_DEVICE,
        "miopen_*": _OTHER_DEVICE,
        "_thnn_fused_*": {"cannot": "a kernel of CUDA alone"},
        # The workspace is oneDNN's own.
        "mkldnn_rnn_layer": {"undefined": (3,)},
        "mkldnn_rnn_layer_backward": {"cannot": "needs the workspace that oneDNN's forward pass has just written"},
        "_pack_padded_sequence": {"host": ("lengths", "out1")},
        "_pack_padded_sequence_backward": {"tolerance": Tolerance(0.0, 0.0)},
    },
    samples=(
        own("mkldnn_rnn_layer", "lstm", *_LSTM, False, (), 2, 5, 1, True, False, False, False),
        own("_pack_padded_sequence", "two_lengths", T((3, 2, 4)), T((2,), (3, 2), "int64"), False),
    ),
)
