"""The faults in the source of a backend's driver."""

from __future__ import annotations

import re
from pathlib import Path

_FAULT = re.compile(r'^FAULT\((\w+),\s*"([^"]*)"\)', re.MULTILINE)


def planted(project: Path) -> dict[str, str]:
    """Return every fault of the distribution in ``project`` and its description, in the file's order."""
    return {
        name: words
        for file in sorted(project.glob("driver/include/*/faults.def"))
        for name, words in _FAULT.findall(file.read_text(encoding="utf-8"))
    }
