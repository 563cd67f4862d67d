"""The examination of a backend: each registration that its torch has is probed in a child process, which may die."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from conformance.backends import Capabilities
from conformance.doctor.probes import LackingError
from conformance.doctor.registrations import REGISTRATIONS, Need, Registration
from conformance.running import crash_log
from conformance.running.child import Child, Death, Hang
from conformance.support.lines import error_line, first_line
from conformance.support.signals import signal_name

TIMEOUT = 60.0  # seconds of a probe


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a registration's probe. ``missing``: what is missing, "" if the registration is there."""

    registration: Registration
    missing: str
    names: tuple[str, ...] = ()  # of the functions or kernels that are missing; () if the finding names none


def examine(
    backend: Capabilities, torch: Version, registrations: Iterable[Registration] = REGISTRATIONS
) -> Iterator[Finding]:
    """Probe each registration that this torch version has."""
    for registration in registrations:
        if registration.since <= torch:
            yield Finding(registration, *_probed(registration, backend))


def _probed(registration: Registration, backend: Capabilities) -> tuple[str, tuple[str, ...]]:
    """Return what is missing, and the names of the missing functions or kernels."""

    def serve(_: Any) -> dict[str, Any]:
        try:
            return {"missing": registration.probe(backend), "names": ()}
        except LackingError as e:
            return {"missing": str(e), "names": e.names}
        except Exception as e:  # noqa: BLE001  # what a missing registration raises is the finding
            return {"missing": error_line(e), "names": ()}

    child = Child(serve)
    try:
        reply = child.ask({}, TIMEOUT)
    finally:
        child.close()
    if isinstance(reply, dict):
        return str(reply["missing"]), tuple(reply["names"])
    return _ended(reply), ()


def _ended(reply: Death | Hang) -> str:
    if isinstance(reply, Hang):
        return f"it did not return within {reply.seconds:g} s"
    said = first_line(crash_log.parse(reply.log).message)
    return ": ".join(filter(None, (f"the process died: {signal_name(reply.status)}", said)))


def text(found: Sequence[Finding], backend: Capabilities, torch: Version) -> str:
    """Return the missing registrations with the lines to add, then the names of the others, as text."""
    missing = [finding for finding in found if finding.missing]
    lines = [f"{backend.asked} on torch {torch}: {len(found) - len(missing)} of {len(found)} registrations found"]
    for need in Need:
        for finding in (f for f in missing if f.registration.need is need):
            one = finding.registration
            purpose = one.purpose.replace("{kind}", backend.kind)
            lines += ["", f"MISSING ({need.value}) {one.name}: {finding.missing}", f"  for: {purpose}", "  add:"]
            added = one.lines_for(torch, backend.kind, backend.module, finding.names)
            lines += [f"    {line}" for line in added.split("\n")]
    there = [finding.registration.name for finding in found if not finding.missing]
    return "\n".join([*lines, "", f"found: {', '.join(there) or 'none'}"])
