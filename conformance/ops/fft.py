"""Fourier transforms and signal windows."""

from __future__ import annotations

from conformance.ops.family import EXACT, Accumulation, Family, Tolerance, words

FAMILY = Family(
    "fft",
    words("_fft_* fft_* istft stft _cufft_* *_window"),
    {"tolerance": Tolerance(8.0, 4.0, Accumulation.ALL)},
    but={
        "fft_*shift": {"tolerance": EXACT},
        "_cufft_*": {"cannot": "the plan cache of a vendor's library"},
    },
)
