"""Device memory around a call: damage that the backend's allocator sees, and what stays alive."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from conformance.backends import Capabilities
from conformance.judging.oracle import CallOutcome
from conformance.records import Mismatch
from conformance.vocabulary import Check, Fact


def leak(before: tuple[int, int], after: tuple[int, int]) -> Mismatch | None:
    """Return what the call kept, or gave back, beyond its results, which are gone by now.

    Both pairs are (blocks, bytes). Bytes are counted too: a scratch block that is replaced by a larger one with each
    call leaves the blocks alone.
    """
    if before == after:
        return None
    blocks, size = after[0] - before[0], after[1] - before[1]
    return Mismatch(Check.LEAK, "", {"kind": Fact.DEVICE_LEAK.value, "blocks": blocks, "bytes": size})


def damage(backend: Capabilities, outcome: CallOutcome) -> list[Mismatch]:
    """Return every block found damaged since the last look; its subject is the argument or result whose storage it is.

    The first word of a line is the block's address, as the adapter promises.
    """
    lines = backend.verify_memory()
    if not lines:
        return []
    names = dict(_storages(outcome))
    subjects = (names.get(line.partition(" ")[0].lower(), "") for line in lines)
    found = zip(subjects, lines, strict=True)
    return [Mismatch(Check.REDZONE, subject, {"kind": Fact.DAMAGE.value, "line": line}) for subject, line in found]


def _storages(outcome: CallOutcome) -> Iterator[tuple[str, str]]:
    """Yield (address of a storage in hexadecimal, what it belongs to), for arguments over results."""
    for name, leaf in outcome.leaves:
        if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
            yield _address(leaf), name
    for argument in outcome.side.arguments:
        yield _address(argument.base), argument.slot.name


def _address(tensor: torch.Tensor) -> str:
    return hex(tensor.untyped_storage().data_ptr())
