"""The function that torch calls on import, in a package of its own: it must not import ``refnpu`` unless asked to."""

from __future__ import annotations

import os


def load() -> None:
    """Import ``refnpu`` if ``REFNPU_AUTOLOAD`` is 1, for programs that do not: the repro scripts of torch's own tools.

    Otherwise torch stays as it is, so that other programs run without the npu in this environment, too.
    """
    if os.environ.get("REFNPU_AUTOLOAD") == "1":
        import refnpu  # noqa: F401 - the import makes the device exist
