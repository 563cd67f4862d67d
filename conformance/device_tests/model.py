"""The model of a list: the ops that PyTorch's device-type tests leave out, by kind of test and dtype. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FORMAT = 1
NAME = "KNOWN_FAILURES"  # of the list in a Python file


class ListError(ValueError):
    """A file that is not a list, or is damaged. The message is one line and names the file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Tests of one op that are left out. ``op`` is the full name of an OpInfo, "*" for all.

    ``kinds``: kinds of tests, see :mod:`conformance.device_tests.kinds`; empty for all. ``dtypes``: empty for all.
    """

    op: str
    kinds: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        parts = [f"{'|'.join(values)}" for values in (self.kinds, self.dtypes) if values]
        return f"{self.op} ({', '.join(parts)})" if parts else self.op


@dataclass(frozen=True, slots=True)
class DeviceTestList:
    """A list, and the parts that could not be mapped.

    ``unmapped``: of an exported list, reason -> cells that PyTorch's tests do not try; of a list that was read, reason
    -> places in the file. ``allowlist``: the only ops whose tests are made; None for all ops.
    """

    entries: tuple[Entry, ...] = ()
    allowlist: tuple[str, ...] | None = None
    unmapped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backend: str = ""
    run: str = ""
    torch: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the dict that is stored in files."""
        ops: dict[str, list[dict[str, Any]]] = {}
        for e in self.entries:
            ops.setdefault(e.op, []).append({"kinds": [*e.kinds], "dtypes": [*e.dtypes], "reason": e.reason})
        return {
            "format": FORMAT, "backend": self.backend, "run": self.run, "torch": self.torch, "ops": ops,
            "allowlist": None if self.allowlist is None else [*self.allowlist],
            "unmapped": {reason: [*cells] for reason, cells in self.unmapped.items()},
        }  # fmt: skip

    @staticmethod
    def from_json(d: Any, where: str) -> DeviceTestList:
        """Return the list of a stored dict, without ``unmapped``. Raises ListError. ``where`` begins its message."""
        if not isinstance(d, dict) or d.get("format") != FORMAT:
            found = d.get("format") if isinstance(d, dict) else type(d).__name__
            raise ListError(f"{where}: expected a list of format {FORMAT}, found {found!r}; export it again")
        ops, allowed = d.get("ops"), d.get("allowlist")
        if not isinstance(ops, dict) or not (allowed is None or _strings(allowed)):
            raise ListError(f"{where}: expected 'ops', a dict by op, and 'allowlist', a list of ops or None")
        entries = tuple(_entry(op, e, where) for op, of in ops.items() for e in _entries(op, of, where))
        names = (str(d.get(key, "")) for key in ("backend", "run", "torch"))
        return DeviceTestList(entries, None if allowed is None else tuple(allowed), {}, *names)


def _entries(op: Any, of: Any, where: str) -> list[Any]:
    if not isinstance(op, str) or not isinstance(of, list):
        raise ListError(f"{where}: ops: {op!r}: expected a list of entries, got {type(of).__name__}")
    return of


def _entry(op: str, d: Any, where: str) -> Entry:
    known = {"kinds", "dtypes", "reason"}
    if not isinstance(d, dict) or not d.keys() <= known:
        raise ListError(f"{where}: ops: {op!r}: expected a dict with {', '.join(sorted(known))}; got {d!r:.60}")
    kinds, dtypes, reason = d.get("kinds", []), d.get("dtypes", []), d.get("reason", "")
    if not (_strings(kinds) and _strings(dtypes) and isinstance(reason, str)):
        raise ListError(f"{where}: ops: {op!r}: expected lists of strings and a reason; got {d!r:.60}")
    return Entry(op, tuple(kinds), tuple(dtypes), reason)


def _strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
