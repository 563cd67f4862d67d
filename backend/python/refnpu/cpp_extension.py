"""The directories of this backend for C++ extensions. ``python -m refnpu.cpp_extension`` prints that for CMake."""

from __future__ import annotations

from pathlib import Path

from refnpu import _C

_INSTALLED = Path(str(_C.__file__)).parent  # in an editable installation too, whose Python files lie elsewhere


def include_paths() -> list[str]:
    """Return the directories of the public headers, ``refnpu/driver.h``, ``refnpu/stream.h`` and so on."""
    return [str(_INSTALLED / "include")]


def library_paths() -> list[str]:
    """Return the directories of ``librefnpu.so``."""
    return [str(_INSTALLED / "lib")]


def cmake_prefix_path() -> str:
    """Return the directory under which ``find_package(refnpu)`` finds the target ``refnpu::refnpu``."""
    return str(_INSTALLED)


if __name__ == "__main__":
    print(cmake_prefix_path())
