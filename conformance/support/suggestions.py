"""Similar names for error messages about unknown names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from conformance.support.wording import some

_FEW = 20  # names that an error message lists
_MANY = 10_000  # among more names, a search for the nearest ones takes seconds


def near(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return at most ``limit`` names of ``known`` that are similar to ``name``, the nearest first. Ignores case.

    Names that begin with ``name``, if it has more than three letters, are nearer than all others, the shortest first.
    """
    by_folded = {k.casefold(): k for k in sorted(set(known), reverse=True)}
    given = name.casefold()
    longer = [k for k in sorted(by_folded, key=lambda k: (len(k), k)) if len(given) > 3 and k.startswith(given)]
    similar = get_close_matches(given, by_folded, n=limit, cutoff=0.6)
    return [by_folded[k] for k in dict.fromkeys([*longer, *similar])][:limit]


def unknown(what: str, name: str, known: Iterable[str], listed_by: str = "") -> str:
    """Return one line: the unknown name, and the near names; if none is near, all names, or the nearest ones of many.

    ``listed_by``: the command that lists all names.
    """
    names = sorted(set(known))
    found = near(name, names)
    if found:
        return f"unknown {what} {name!r}; near: {', '.join(found)}"
    if len(names) <= _FEW:
        return f"unknown {what} {name!r}; {listed(names)}"
    every = f"; `{listed_by}` lists them" if listed_by else ""
    return f"unknown {what} {name!r}; {_nearest(name, names)}{every}"


def _nearest(name: str, names: Sequence[str]) -> str:
    """Return the nearest of many names, none of which is near, and their number."""
    if len(names) > _MANY:
        return f"none of the {len(names)} known names is near"
    return f"the nearest of {len(names)}: {', '.join(get_close_matches(name, names, n=3, cutoff=0))}"


def listed(known: Collection[str]) -> str:
    """Return a part of an error message: the known names if they are few, else the first ones and their number."""
    return f"known: {some(list(known), _FEW) or 'none'}"
