"""The backend's own tests, run with each fault that the suite does not find."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conformance.lanes.matrix import Matrix

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
TIMEOUT = 600.0


@dataclass(frozen=True)
class OwnTests:
    """The tests of the backend's distribution, except those that wake faults themselves."""

    root: Path
    matrix: Matrix
    python: str
    kept: Path  # the file with the results, also of earlier runs

    def kills(self, faults: list[str]) -> dict[str, str] | None:
        """Return the first failing test for each fault. None if a test fails without a fault, which is printed.

        Such a failure is not kept: a busy machine may be the reason.
        """
        known: dict[str, str] = json.loads(self.kept.read_text(encoding="utf-8")) if self.kept.is_file() else {}
        for fault in ["", *faults] if faults else []:
            if fault not in known:
                known[fault] = self._first_failing(fault)
            if known.get(""):
                print(f"the backend's own tests were not used: they fail without any fault: {known['']}")
                return None
            self.kept.write_text(json.dumps(known), encoding="utf-8")
        return {fault: known[fault] for fault in faults if known[fault]}

    def _first_failing(self, fault: str) -> str:
        tests = self.root / self.matrix.project / "tests"
        files = sorted(str(f) for f in tests.glob("test_*.py") if "fault" not in f.stem)
        variable = importlib.import_module(f"{self.matrix.module}.testing").VARIABLE
        command = [self.python, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", *files]
        try:
            done = subprocess.run(
                command, cwd=self.root, env=os.environ | {variable: fault}, capture_output=True, text=True,
                timeout=TIMEOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no end within {TIMEOUT:g} s"
        if done.returncode == 0:
            return ""
        found = _FAILED.search(done.stdout)
        return found[1] if found else f"pytest ended with {done.returncode}"
