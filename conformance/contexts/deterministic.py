"""Calls under deterministic algorithms, where torch raises or warns if an op has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op
from conformance.ops.family import OpFacts

# Operators that torch.utils.deterministic.fill_uninitialized_memory names.
_FILLED = frozenset({"empty", "empty_strided", "empty_permuted", "empty_like", "resize_"})


def has_no_deterministic_algorithm(error: BaseException | None) -> bool:
    """Whether an error says that an op is not deterministic. The second text is that of products on CUDA."""
    texts = ("does not have a deterministic implementation", "is not deterministic because")
    return isinstance(error, RuntimeError) and any(text in str(error) for text in texts)


class Deterministic(Context):
    """The op gives the same bits each time or raises, and torch fills memory that would be uninitialized.

    In the variant "warn_only" torch warns if an op has no deterministic algorithm, and no op may raise for this
    reason.
    """

    name = "deterministic"
    helpers = (has_no_deterministic_algorithm,)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op under deterministic algorithms.

        As torch.use_deterministic_algorithms sets them, which loads torch's compiler besides.
        """
        before = torch.get_deterministic_debug_mode()
        torch.set_deterministic_debug_mode("warn" if how.variant == "warn_only" else "error")
        mode = torch.get_deterministic_debug_mode()
        try:
            result = op(*args, **kwargs)
            if torch.get_deterministic_debug_mode() != mode:
                raise AssertionError("the call changed the mode of deterministic algorithms")
            return result
        except RuntimeError as e:
            if how.variant == "warn_only" and has_no_deterministic_algorithm(e):
                said = str(e).partition("\n")[0]
                raise AssertionError(f"torch was asked for a warning, and the op raised: {said}") from e
            raise
        finally:
            torch.set_deterministic_debug_mode(before)

    def repeats(self, variant: str) -> bool:
        return variant != "warn_only"

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return replace(facts, undefined=()) if overload.partition(".")[0] in _FILLED else facts

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether torch raised because the op has no deterministic algorithm on the device."""
        return has_no_deterministic_algorithm(error)
