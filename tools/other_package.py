"""Another project's package that is also called ``conformance``, for the tests of the built packages."""

from __future__ import annotations

import zipfile
from pathlib import Path

NAME = "other-conformance"
_FILES = {
    "conformance/__init__.py": "",
    "conformance/cli.py": "",
    "conformance/test_other.py": "def test_it():\n    pass\n",
}
_INFO = "other_conformance-1.0.dist-info"


def write_source(directory: Path) -> Path:
    """Write the package into a directory, for the front of Python's path, and return the directory."""
    for name, text in _FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def write_wheel(directory: Path) -> Path:
    """Write a wheel with the package into a directory, and return its path."""
    wheel = directory / "other_conformance-1.0-py3-none-any.whl"
    facts = {
        f"{_INFO}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1.0\n",
        f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = "".join(f"{name},,\n" for name in [*_FILES, *facts, f"{_INFO}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**_FILES, **facts, f"{_INFO}/RECORD": listed}.items():
            archive.writestr(name, text)
    return wheel
