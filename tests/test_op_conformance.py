"""The command where another package is also named ``conformance``: a clear error, and no traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = "import sys, op_conformance; sys.argv = ['conformance', '--help']; op_conformance.main()"
# The `pytest` command does not put the current directory on the path; `python -m pytest` does.
PYTEST = "import sys, pytest; sys.path.remove(''); sys.exit(pytest.main())"


def run(code: str, *arguments: str, path: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Return a directory with another project's package, for the front of ``PYTHONPATH``."""
    (tmp_path / "theirs" / "conformance").mkdir(parents=True)
    (tmp_path / "theirs" / "conformance" / "__init__.py").touch()
    (tmp_path / "theirs" / "conformance" / "test_theirs.py").write_text("def test_it():\n    pass\n")
    return tmp_path / "theirs"


def test_the_command_says_which_package_hides_the_suite(theirs: Path, tmp_path: Path) -> None:
    done = run(COMMAND, path=f"{theirs}{os.pathsep}{ROOT}", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: the suite is the package conformance in {ROOT / 'conformance'}, but Python finds "
        f"{theirs / 'conformance' / '__init__.py'}; install the suite in an environment of its own\n"
    )


def test_pytest_with_the_suite_s_options_says_the_same(theirs: Path, tmp_path: Path) -> None:
    path = f"{theirs}{os.pathsep}{ROOT}"
    done = run(PYTEST, "--pyargs", "conformance", "--backend", "cpu", path=path, cwd=tmp_path)
    assert done.returncode == 4
    assert f"but Python finds {theirs / 'conformance' / '__init__.py'}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_other_project_s_tests_run(theirs: Path, tmp_path: Path) -> None:
    done = run(PYTEST, "--pyargs", "conformance", "-q", path=f"{theirs}{os.pathsep}{ROOT}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_command_says_who_has_overwritten_the_suite(tmp_path: Path) -> None:
    """Pip installs the files of both projects into one directory."""
    both = tmp_path / "both"
    (both / "conformance").mkdir(parents=True)
    (both / "conformance" / "__init__.py").touch()
    (both / "conformance" / "cli.py").touch()
    shutil.copy(ROOT / "op_conformance.py", both)
    (both / "other-1.dist-info").mkdir()
    (both / "other-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (both / "other-1.dist-info" / "RECORD").write_text("conformance/__init__.py,,\nconformance/cli.py,,\n")
    done = run(COMMAND, path=str(both), cwd=tmp_path)
    assert done.returncode == 2
    assert "other has installed a package conformance over the suite's" in done.stderr
