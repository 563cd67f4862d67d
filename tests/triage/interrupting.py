"""A triage that is interrupted by Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def interrupted_at(
    told: str, where: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> tuple[int, str, dict[str, Any]]:
    """Interrupt ``triage ARGUMENTS`` at the line with ``told``. Return the exit code, the output, and the evidence."""
    command = [sys.executable, "-m", "conformance.cli", "triage", "--out", str(where / "out"), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stderr=pipe, stdout=pipe, text=True, cwd=ROOT, env=environment) as process:
        assert process.stderr
        for line in process.stderr:
            if told in line:
                process.send_signal(signal.SIGINT)
                break
        said, _ = process.communicate()
    return process.returncode, said, json.loads((where / "out" / "report.json").read_text())["evidence"]
