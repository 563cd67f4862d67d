"""The sessions of the noxfile, as nox lists them."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def listed() -> frozenset[str]:
    """Return the names of the sessions, and for parametrized sessions also the name without parameters."""
    command = (sys.executable, "-m", "nox", "--list", "--noxfile", str(ROOT / "noxfile.py"))
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    names = re.findall(r"^[*-] (.+?)(?: -> .*)?$", told.stdout, re.MULTILINE)
    return frozenset(names) | {name.partition("(")[0] for name in names}
