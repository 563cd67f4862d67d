"""PyTorch's own device-type tests: the table of their ops, and the exclusion of some ops for a backend.

torch 2.13 has ``op_overrides`` and ``op_allowlist`` on a test base; torch 2.8 has none of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PREFIXES = {"nn.functional.": "", "torch.ops.aten.": "", "special.": "special_", "linalg.": "linalg_", "fft.": "fft_"}


@dataclass(frozen=True, slots=True)
class OpInfoName:
    """An entry of torch's table of ops: its full name, as tests use it, and the operators that it is named after."""

    full_name: str
    operators: frozenset[str]


def opinfo_names() -> Iterator[OpInfoName]:
    """Yield the entries of the installed torch. Needs expecttest and numpy, which torch.testing._internal imports."""
    for op in op_tables():
        names = {op.name, op.aten_name, *(alias.name for alias in op.aliases)}
        yield OpInfoName(op.full_name, frozenset(map(_operator, names)))


def _operator(name: str) -> str:
    """Return the operator of an entry's name or alias, e.g. ``special_erf`` for ``special.erf``."""
    for prefix, operator in _PREFIXES.items():
        if name.startswith(prefix):
            return operator + name.removeprefix(prefix).removesuffix(".default")
    return name


def op_tables() -> Iterator[Any]:
    """Yield the ``OpInfo`` of all ops."""
    from torch.testing._internal import common_methods_invocations as tables

    yield from tables.op_db
    for group in ("unary", "binary", "pointwise", "reduce", "other"):
        yield from getattr(tables, f"foreach_{group}_op_db", ())


def known_failure(entry: Mapping[str, Any], tests_of_kind: Mapping[str, Sequence[str]], base: Any, xfail: bool) -> Any:
    """Return a decoration of the tests of an op that an entry lists, for the devices of a test base."""
    import unittest

    import torch
    from torch.testing._internal.opinfo.core import DecorateInfo

    kinds = [tests_of_kind[kind] for kind in entry["kinds"]]
    dtypes = [getattr(torch, name, None) for name in entry["dtypes"]]
    names = {base.device_type}

    class KnownFailure(DecorateInfo):
        # torch compares with the device's name at one time only. It changes when the first test of a process is made.
        def is_active(self, cls_name, test_name, device_type, dtype, param_kwargs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
            ours = device_type in names or device_type == base.device_type
            listed = any(not tests or test_name in tests for tests in kinds)
            return ours and listed and (not dtypes or dtype is None or dtype in dtypes)

    return KnownFailure(unittest.expectedFailure if xfail else unittest.skip(entry["reason"]))


def apply_known_failures(
    known: Mapping[str, Any], tests_of_kind: Mapping[str, Sequence[str]], base: Any = None, xfail: bool = False
) -> None:
    """Have the tests that are made for a test base, by default PrivateUse1's, leave out what is known to fail."""
    from torch.testing._internal import common_device_type, common_methods_invocations

    base = base or common_device_type.PrivateUse1TestBase
    tables = [
        table for name, table in vars(common_methods_invocations).items()
        if name.endswith("op_db") and isinstance(table, list)
    ]  # fmt: skip
    listed = {
        prefix + name: [known_failure(entry, tests_of_kind, base, xfail) for entry in entries]
        for name, entries in known["ops"].items()
        for prefix in ("", "_refs.")
    }
    allowed = known.get("allowlist")
    if allowed is not None and hasattr(base, "op_allowlist"):
        base.op_allowlist = [*allowed, *(f"_refs.{name}" for name in allowed)]
    elif allowed is not None:
        entry = {"kinds": ["plain"], "dtypes": [], "reason": "not on the allowlist"}
        for name in {op.full_name for table in tables for op in table}:
            if name.removeprefix("_refs.") not in allowed:
                listed.setdefault(name, []).append(known_failure(entry, {"plain": ()}, base, False))
    if hasattr(base, "op_overrides"):
        old = base.op_overrides or {}
        base.op_overrides = {**old, **{name: [*old.get(name, ()), *added] for name, added in listed.items()}}
        return
    for op in {id(op): op for table in tables for op in table}.values():
        op.decorators = (*op.decorators, *listed.get(op.full_name, ()))


def source_of_application() -> str:
    """Return the source of :func:`apply_known_failures` and of the function that it calls. It needs only torch."""
    return "\n\n".join(inspect.getsource(function) for function in (known_failure, apply_known_failures))
