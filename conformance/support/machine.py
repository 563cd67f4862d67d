"""The machine's processor and C library, which can change results. No torch."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from pathlib import Path


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model. If the system does not name it, return the architecture."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def libc() -> str:
    """Return the C library and its version, e.g. ``glibc 2.36``; "" if they are unknown."""
    return " ".join(filter(None, platform.libc_ver()))


def libm(maps: Path = Path("/proc/self/maps")) -> str:
    """Return the first 12 digits of the SHA-256 of this process' libm, "" if it is not found.

    Two builds of one version may round differently, for example after an update of the distribution.
    """
    try:
        words = (line.split(maxsplit=5) for line in maps.read_text(encoding="utf-8", errors="replace").splitlines())
        files = (Path(word[5]) for word in words if len(word) == 6)
        found = next((file for file in files if file.name.startswith(("libm.so", "libm-"))), None)
        return hashlib.sha256(found.read_bytes()).hexdigest()[:12] if found else ""
    except OSError:
        return ""


def cxx_compiler() -> str:
    """Return the C++ compiler that torch.compile calls, with its version and the flags that the environment adds."""
    compiler = os.environ.get("CXX", "g++")
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False, timeout=60)
        version = done.stdout.partition("\n")[0]
    except (OSError, subprocess.TimeoutExpired) as e:
        version = type(e).__name__
    flags = [f"{name}={os.environ[name]}" for name in ("CXXFLAGS", "CPPFLAGS", "CPATH") if name in os.environ]
    return ", ".join([f"{compiler}: {version}", *flags])
