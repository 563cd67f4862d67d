"""CPU results of a later torch version, for cases in which an earlier version gives other results.

Some CPU kernels are fixed between two torch versions. A correct device must not fail because the older CPU kernel is
wrong. ``later.safetensors`` has the later kernel's results of these cases, with the torch version that gave them.
``python -m tools.later_torch`` adds cases to the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from conformance.corpus.reader import DATA, LATER, CorpusError

_CASES = "cases"  # the key in the file's header; safetensors takes text alone there


@dataclass(frozen=True)
class Later:
    """The outcome of a case: the type of the exception, or the results followed by the values of the written arguments.

    None stands for a result that is not a tensor.
    """

    error: str = ""
    results: tuple[torch.Tensor | None, ...] = ()


#: Case id -> its outcome on CPU in a later torch, and the version of that torch ("2.13").
Outcomes = Mapping[str, tuple[Later, str]]


def of(case: str) -> Later | None:
    """Return a case's outcome on CPU in a later torch, or None if no other outcome is known. Raises CorpusError."""
    later, since = _read(DATA / LATER).get(case, (None, ""))
    return later if later and is_earlier(torch.__version__, since) else None


def version(of_torch: str = torch.__version__) -> str:
    """Return a torch version as two numbers: "2.6"."""
    return ".".join(of_torch.split(".")[:2])


def is_earlier(one: str, than: str = torch.__version__) -> bool:
    """Return whether a torch version is earlier than another one. Only the first two numbers count."""
    first, second = (tuple(map(int, version(of).split("."))) for of in (one, than))
    return first < second


def read(file: Path) -> dict[str, tuple[Later, str]]:
    """Read a file of outcomes. Raises CorpusError if it is damaged."""
    try:
        with safe_open(file, framework="pt") as opened:
            return dict(_entry(opened, i, found) for i, found in enumerate(json.loads(opened.metadata()[_CASES])))
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as e:
        raise CorpusError(f"{file}: not a file of outcomes under a later torch ({e}); restore it") from e


def write(file: Path, outcomes: Outcomes) -> None:
    """Write a file of outcomes, sorted, so that equal ones give equal bytes."""
    entries: list[dict[str, Any]] = []
    tensors: dict[str, torch.Tensor] = {}
    for case, (later, since) in sorted(outcomes.items()):
        dtypes = [None if t is None else str(t.dtype).removeprefix("torch.") for t in later.results]
        names = {f"{len(entries)}.{i}": t for i, t in enumerate(later.results) if t is not None}
        tensors |= {name: torch.view_as_real(t) if t.is_complex() else t for name, t in names.items()}
        entries.append({"case": case, "torch": since, "error": later.error, "results": dtypes})
    file.write_bytes(save({n: t.contiguous() for n, t in tensors.items()}, {_CASES: json.dumps(entries)}))


_read = lru_cache(maxsize=1)(read)


def _entry(opened: Any, i: int, found: dict[str, Any]) -> tuple[str, tuple[Later, str]]:
    results = tuple(None if t is None else _tensor(opened, f"{i}.{j}", t) for j, t in enumerate(found["results"]))
    return found["case"], (Later(found["error"], results), found["torch"])


def _tensor(opened: Any, name: str, dtype: str) -> torch.Tensor:
    stored: torch.Tensor = opened.get_tensor(name)
    return torch.view_as_complex(stored) if dtype.startswith("complex") else stored
