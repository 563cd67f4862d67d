"""An inventory as text: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from conformance.vocabulary import Route

if TYPE_CHECKING:
    from conformance.inventory import Overload

_HEAD = ("overload", "route", "target", "tags")


def table(overloads: Sequence[Overload]) -> str:
    """Return a line for each overload and a last line with counts. Targets are the overloads that coverage counts."""
    rows = [_HEAD, *((o.name, o.route.value, "yes" if o.is_target else "", " ".join(o.tags)) for o in overloads)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, counts(overloads)])


def counts(overloads: Sequence[Overload]) -> str:
    """Return the numbers of overloads and of targets by route."""
    routes = Counter(o.route for o in overloads)
    targets = Counter(o.route for o in overloads if o.is_target)
    served = ", ".join(f"{route} {routes[route]} ({targets[route]})" for route in Route if routes[route])
    return f"{len(overloads)} overloads ({sum(targets.values())} targets): {served or 'none'}"


def as_json(overloads: Sequence[Overload]) -> str:
    """Return a JSON array with an object for each overload."""
    return json.dumps([asdict(o) for o in overloads], indent=1)
