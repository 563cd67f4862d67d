"""The failing cells that a list names, and the entries that name none."""

from __future__ import annotations

from conformance.device_tests.mapping import NotMapped, OpInfoMap, places
from conformance.device_tests.model import DeviceTestList, Entry
from conformance.records import Observation
from conformance.support.suggestions import unknown


class Listed:
    """A list that is matched with the failing cells of a run, one after the other."""

    def __init__(self, found: DeviceTestList, ops: OpInfoMap) -> None:
        self._found, self._ops = found, ops
        self._by_op: dict[str, list[Entry]] = {}
        for entry in found.entries:
            self._by_op.setdefault(entry.op.removeprefix("_refs."), []).append(entry)
        self._used: set[Entry] = set()

    def reason(self, observation: Observation) -> str:
        """Return the reason of the first entry that names a failing cell; "" if none does."""
        try:
            found = list(places(observation, self._ops))
        except NotMapped:
            return ""
        entries = [
            entry
            for op, kind in found
            for entry in (*self._by_op.get(op, ()), *self._by_op.get("*", ()))
            if _covers(entry, kind, observation.cell.dtype)
        ]
        self._used.update(entries)
        if entries:
            return entries[0].reason or "listed for PyTorch's tests"
        allowed = self._found.allowlist
        if allowed is not None and not {op for op, _ in found} & set(allowed):
            return "not on the op_allowlist for PyTorch's tests"
        return ""

    def unknown(self) -> list[str]:
        """Return a line for each op of the list that this torch does not have."""
        names = {name.removeprefix("_refs.") for name in (*self._by_op, *(self._found.allowlist or ()))}
        return [unknown("OpInfo", op, self._ops.ops) for op in sorted(names - self._ops.ops - {"*"})]

    def unused(self) -> list[Entry]:
        """Return the entries of known ops for which :meth:`reason` found no cell."""
        known = {*self._ops.ops, "*"}
        entries = self._found.entries
        return [e for e in entries if e not in self._used and e.op.removeprefix("_refs.") in known]


def _covers(entry: Entry, kind: str, dtype: str) -> bool:
    return (not entry.kinds or kind in entry.kinds) and (not entry.dtypes or dtype in entry.dtypes)
