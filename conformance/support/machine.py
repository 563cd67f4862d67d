"""The machine: its processor and its C library, as far as they can change a result. No torch."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model, as the system names it; its architecture where the system does not say."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def libc() -> str:
    """The C library and its version, e.g. ``glibc 2.36``; "" where it does not say."""
    return " ".join(filter(None, platform.libc_ver()))


def libm(maps: Path = Path("/proc/self/maps")) -> str:
    """The first 12 digits of the SHA-256 of this process' C library of mathematics; "" where there is none to be seen.

    Two builds of one version may round differently: a distribution's update is enough.
    """
    try:
        words = (line.split(maxsplit=5) for line in maps.read_text(encoding="utf-8", errors="replace").splitlines())
        files = (Path(word[5]) for word in words if len(word) == 6)
        found = next((file for file in files if file.name.startswith(("libm.so", "libm-"))), None)
        return hashlib.sha256(found.read_bytes()).hexdigest()[:12] if found else ""
    except OSError:
        return ""
