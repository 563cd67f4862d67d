"""The command ``conformance``, and whether the package ``conformance`` that Python imports is the suite's.

This module is not part of that package: another project's package of the same name may hide it, or overwrite its files.
"""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "conformance"
DISTRIBUTION = "op-conformance"
USAGE = 2  # as of every mistake in a command


def main() -> None:
    """Run the command. Exits with 2 if another package is imported in place of the suite's."""
    if problem := hidden():
        sys.exit(_told(problem))
    try:
        from conformance.cli import main as run
    except ImportError:
        if problem := overwritten():
            sys.exit(_told(problem))
        raise
    run()


def hidden() -> str:
    """Return what Python would import in place of the suite's package, "" if it would import that."""
    found = find_spec("conformance")
    origin = Path(found.origin).resolve() if found is not None and found.origin is not None else None
    if origin is not None and origin.parent == PACKAGE:
        return ""
    where = "finds none" if found is None else f"finds {origin or 'a directory without __init__.py'}"
    return f"the suite is the package conformance in {PACKAGE}, but Python {where}"


def overwritten() -> str:
    """Return which other projects have installed files into the suite's package, "" if none has."""
    others = sorted(set(packages_distributions().get("conformance", [])) - {DISTRIBUTION})
    return f"{', '.join(others)} has installed a package conformance over the suite's" if others else ""


def _told(problem: str) -> int:
    print(f"Error: {problem}; install the suite in an environment of its own", file=sys.stderr)
    return USAGE
