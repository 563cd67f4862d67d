"""The environment of a lane on a node: made once, by the first task that needs it."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from conformance.cluster.model import ClusterError
from conformance.lanes import process

LINES = 3  # of nox's output, in the error


def ensure(root: Path, environment: str, token: str, *, reuse: bool = False) -> None:
    """Make the environment of a session of the checkout ``root``, unless this cluster run did so already.

    ``token`` names the cluster run. With ``reuse``, an environment that exists is not made again. Other tasks of the
    node wait meanwhile. Raises ClusterError with the end of nox's output if the environment cannot be made.
    """
    if not (root / "noxfile.py").is_file() and not _exists(root, environment):
        raise ClusterError(f"{root} is no checkout of the suite; every node needs one at this path")
    done = root / ".nox" / f"{environment}.cluster"
    with _alone(done.with_suffix(".lock")):
        made_by = done.read_text(encoding="utf-8") if done.is_file() else ""
        if _exists(root, environment) and (reuse or made_by == token):
            return
        _make(root, environment)
        done.write_text(token, encoding="utf-8")


def _exists(root: Path, environment: str) -> bool:
    file = process.interpreter_file(root, environment)
    return file.is_file() and Path(file.read_text(encoding="utf-8")).exists()


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Keep other processes of the node out of the ``with`` block. The lock ends with the process that holds it."""
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _make(root: Path, environment: str) -> None:
    log = root / ".nox" / f"{environment}.cluster.log"
    with log.open("wb") as output:
        code = subprocess.run(
            [*_nox(), "-s", environment], cwd=root, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code or not _exists(root, environment):
        ending = " | ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-LINES:])
        raise ClusterError(f"`nox -s {environment}` failed in {root}: {ending}; all of its output: {log}")


def _nox() -> list[str]:
    if find_spec("nox"):
        return [sys.executable, "-m", "nox"]
    if found := shutil.which("nox"):
        return [found]
    raise ClusterError("nox is not installed; install it beside Ray: pip install 'nox[uv]'")
