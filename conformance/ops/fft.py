"""Fourier transforms and signal windows."""

from __future__ import annotations

from typing import Any

from conformance.ops.family import EXACT, Accumulation, Device, Dtype, Family, T, Tolerance, own, words

_NEW: dict[str, Any] = {"dtype": Dtype(), "device": Device()}
_WINDOWS = words("bartlett_window blackman_window hamming_window hann_window kaiser_window")

FAMILY = Family(
    "fft",
    words("_fft_* fft_* istft stft _cufft_* *_window"),
    {"tolerance": Tolerance(8.0, 4.0, Accumulation.ALL, normwise=True)},
    but={
        "fft_*shift": {"tolerance": EXACT},
        # No kernel makes the checks of torch.fft's functions: that each dim is named once, and that the scaling is one
        # of three.
        "_fft_*": {"fixed": ("dim", "normalization")},
        "_cufft_*": {"cannot": "the plan cache of a vendor's library"},
    },
    samples=(
        *[own(window, "ten", 10, **_NEW) for window in _WINDOWS],
        *[own(f"{window}.periodic", "symmetric", 10, False, **_NEW) for window in _WINDOWS],
        *[own(f"{window}.out", "ten", 10, out=T((10,), "undefined")) for window in _WINDOWS],
        *[own(f"{window}.periodic_out", "symmetric", 10, False, out=T((10,), "undefined")) for window in _WINDOWS],
        own("hamming_window.periodic_alpha", "half", 10, False, 0.5, **_NEW),
        own("hamming_window.periodic_alpha_beta", "halves", 10, False, 0.5, 0.4, **_NEW),
        own("kaiser_window.beta", "eight", 10, False, 8.0, **_NEW),
        own("fft_fftfreq", "even", 8, 0.5, **_NEW),
        own("fft_fftfreq", "odd", 7, 0.5, **_NEW),
        own("fft_rfftfreq", "even", 8, 0.5, **_NEW),
        own("fft_fftfreq.out", "even", 8, 0.5, out=T((8,), "undefined")),
        own("fft_rfftfreq.out", "even", 8, 0.5, out=T((5,), "undefined")),
    ),
)
