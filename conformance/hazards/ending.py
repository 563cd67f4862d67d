"""The hazard of a process that ends while work is queued."""

from __future__ import annotations

import subprocess
import sys

import torch

from conformance.hazards.bench import Bench, difference
from conformance.hazards.model import Found, hazard

SECONDS = 240.0  # until a process counts as hanging, its start included
#: A program that exits with two seconds of work queued, if the backend delays work.
SCRIPT = """
import sys, torch
from conformance import backends
backend = backends.find(sys.argv[1])
torch.set_num_threads(1)
with backend.delayed_work(10000):
    x = torch.ones(64, device=backend.device)
    for _ in range(200):
        x.add_(1)
    sys.exit()
"""


@hazard("work that is queued", "the exit of the process", once=True)
def exit_with_work_queued(bench: Bench) -> Found:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, bench.backend]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    yield difference("the exit code", torch.tensor([float(done.returncode)]), 0)
