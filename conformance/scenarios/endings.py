"""Processes that end while the device still has work or objects.

When a process ends, the objects of the backend, of Python and of torch are destroyed in an order that is not fixed. A
process that crashes in this phase has done its work, but its parent treats it as failed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from conformance.scenarios import patience
from conformance.scenarios.model import NotOffered, Results, scenario
from conformance.scenarios.new_processes import loaded_by

SECONDS = 150.0  # limit for a process, including its import of torch

_BEGIN = """
import atexit, contextlib, importlib, pathlib, sys, threading
import torch
importlib.import_module({module!r})
device, file = torch.device({device!r}), pathlib.Path({file!r})
torch.set_num_threads(1)
x = torch.ones(64, 64).to(device)
file.touch()


def say(tensor):
    file.write_text(str(float(tensor.sum())))


"""


@dataclass(frozen=True, slots=True)
class Ending:
    """The last lines of a process, its exit code, and the number that it must write."""

    code: str
    exit_code: int
    says: float  # the number that it must write to a file before or while it ends


ENDINGS = {
    "work_in_flight": Ending(
        """
kept = [x, x.untyped_storage(), x.t(), (x.clone().requires_grad_() * x).sum()]
kept.append(kept)  # a cycle, which Python frees late
with contextlib.suppress(RuntimeError, NotImplementedError, AttributeError, TypeError):  # not every device has them
    kept.append(torch.Generator(device))
    kept += [torch.Event(device), torch.Stream(device)]
    kept[-2].record(kept[-1])
    kept.append(torch.ones(1000).pin_memory())
thread = threading.Thread(target=lambda: kept.append(x + 1))
thread.start()
thread.join()
sys.kept = kept
say(x)
for _ in range(50):
    x = x @ x / 64
""",
        exit_code=0,
        says=4096.0,
    ),
    "work_at_the_end": Ending(
        """
class Last:
    def __del__(self, x=x):
        self.number = x * 2


last = Last()
last.itself = last
atexit.register(lambda: say(x + x.cpu().to(device)))
""",
        exit_code=0,
        says=8192.0,
    ),
    "error": Ending(
        """
def fail(tensor):
    say(tensor)
    raise ValueError("wanted")


fail(x + x)
""",
        exit_code=1,
        says=8192.0,
    ),
}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def processes_end(device: str) -> Results:
    """A process ends as it wants to while work is in flight, objects of the device live, and functions run at exit."""
    if torch.device(device).type == "cpu":
        found = {name: (ending.exit_code, ending.says) for name, ending in ENDINGS.items()}
    else:
        found = {name: ended(ending, device) for name, ending in ENDINGS.items()}
    codes = {f"{name}.exit_code": torch.tensor(code) for name, (code, _) in found.items()}
    return codes | {f"{name}.says": torch.tensor(number) for name, (_, number) in found.items()}


def ended(ending: Ending, device: str) -> tuple[int, float]:
    """Return the exit code of a process, negative for a signal, and the number that it wrote; NaN if none.

    Raises NotOffered if a new process that imports the device's module does not know the device, and AssertionError if
    the process does not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said"
        begin = _BEGIN.format(module=loaded_by(device), device=device, file=str(file))
        command = [sys.executable, "-c", begin + ending.code]
        try:
            code, _, _ = patience.run(command, SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"a process has not {'ended' if file.exists() else 'begun'} in time") from None
        if not file.exists():
            raise NotOffered("the device in a new process that imports its module")
        said = float("nan")
        with suppress(OSError, ValueError):
            said = float(file.read_text(encoding="utf-8"))
        return code, said
