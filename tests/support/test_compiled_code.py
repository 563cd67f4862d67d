"""The directory of what torch compiles: one for a process and its children, which the process removes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os
from conformance.support.compiled_code import use_own_cache
use_own_cache()
directory = os.environ["TORCHINDUCTOR_CACHE_DIR"]
if os.fork() == 0:
    raise SystemExit(0)
os.wait()
print(directory, os.path.isdir(directory), os.environ["TORCHINDUCTOR_COMPILE_THREADS"])
"""


def run(**variables: str) -> list[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TORCHINDUCTOR_")} | variables
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_directory_outlives_children_and_ends_with_the_process() -> None:
    directory, existed, threads = run()
    assert (existed, threads) == ("True", "1")
    assert not Path(directory).exists()


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    directory, _, threads = run(TORCHINDUCTOR_CACHE_DIR=str(tmp_path), TORCHINDUCTOR_COMPILE_THREADS="3")
    assert (directory, threads) == (str(tmp_path), "3")
    assert tmp_path.exists()


def test_the_directory_that_torch_has_set_is_not_used(tmp_path: Path) -> None:
    of_torch = tmp_path / "torchinductor_someone"
    directory, existed, _ = run(TMPDIR=str(tmp_path), TORCHINDUCTOR_CACHE_DIR=str(of_torch))
    assert Path(directory).parent == tmp_path
    assert (Path(directory) != of_torch, existed) == (True, "True")
