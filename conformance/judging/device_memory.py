"""Device memory around a call: damage that the backend's allocator finds, and leaks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from conformance.backends import Capabilities
from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact


def leak(before: tuple[int, int], after: tuple[int, int]) -> Mismatch | None:
    """Return a mismatch if the call kept or freed memory beyond its results, which are freed by now.

    Both pairs are (blocks, bytes). Bytes count because a call that replaces a scratch block by a larger one leaves
    the number of blocks unchanged.
    """
    if before == after:
        return None
    blocks, size = after[0] - before[0], after[1] - before[1]
    return Mismatch(Check.LEAK, "", {"kind": Fact.DEVICE_LEAK.value, "blocks": blocks, "bytes": size})


def damage(backend: Capabilities, outcome: CallOutcome) -> list[Mismatch]:
    """Return a mismatch for each block found damaged since the last check, about the argument or result in it.

    The first word of a line is the block's address, as the adapter has to ensure.
    """
    lines = backend.verify_memory()
    if not lines:
        return []
    names = dict(_storages(outcome))
    subjects = (names.get(line.partition(" ")[0].lower(), "") for line in lines)
    found = zip(subjects, lines, strict=True)
    return [Mismatch(Check.REDZONE, subject, {"kind": Fact.DAMAGE.value, "line": line}) for subject, line in found]


def _storages(outcome: CallOutcome) -> Iterator[tuple[str, str]]:
    """Yield (hexadecimal address of a storage, its result or argument), arguments last, to win in a dict."""
    for name, leaf in outcome.leaves:
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
            yield _address(leaf), name
    for argument in outcome.side.arguments:
        yield _address(argument.base), argument.slot.name


def _address(tensor: torch.Tensor) -> str:
    return hex(tensor.untyped_storage().data_ptr())
