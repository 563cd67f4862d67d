"""Which known names lie near one that is unknown, and how an error says so."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """At most ``limit`` of ``known`` that resemble ``name``, nearest first; letter case does not count."""
    by_folded = {k.casefold(): k for k in sorted(set(known), reverse=True)}
    return [by_folded[m] for m in get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)]


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line: what is unknown, and the near names, or all of them when they are few and none is near."""
    names = sorted(set(known))
    found = near(name, names)
    if found:
        return f"unknown {what} {name!r}; near: {', '.join(found)}"
    if len(names) <= 20:
        return f"unknown {what} {name!r}; known: {', '.join(names) or 'none'}"
    return f"unknown {what} {name!r}; none of the {len(names)} known names is near"
