"""Calls under ``torch.use_deterministic_algorithms(True)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op
from conformance.ops.family import OpFacts

# Operators that torch.utils.deterministic.fill_uninitialized_memory names.
_FILLED = frozenset({"empty", "empty_strided", "empty_permuted", "empty_like", "resize_"})


class Deterministic(Context):
    """The op gives the same bits each time or raises, and torch fills what would be uninitialized memory."""

    name = "deterministic"
    repeats = True

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op while only deterministic algorithms are allowed."""
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            return op(*args, **kwargs)
        finally:
            torch.use_deterministic_algorithms(before)

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return replace(facts, undefined=()) if overload.partition(".")[0] in _FILLED else facts

    def refuses(self, error: BaseException | None) -> bool:
        """Whether torch raised because the op has no deterministic algorithm on the device."""
        return isinstance(error, RuntimeError) and "does not have a deterministic implementation" in str(error)
