"""Calls under ``torch.inference_mode()``."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from conformance.contexts.model import Context
from conformance.vocabulary import Check


class InferenceMode(Context):
    """The arguments are inference tensors, which have no version counter and reach no autograd kernel."""

    name = "inference_mode"
    unchecked = frozenset({Check.VERSION})
    decorator = "torch.inference_mode()"

    def around(self) -> AbstractContextManager[Any]:
        mode: AbstractContextManager[Any] = torch.inference_mode()
        return mode
