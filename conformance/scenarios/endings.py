"""Processes that end while the device has something to do or to hold, and forked ones that end before their parent.

What a backend tears down when a process ends, it tears down in an order that nobody chose: its own objects, Python's,
and those of torch. A process that dies there has done its work, and whoever started it takes it for failed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from conformance.scenarios.model import NotOffered, Results, scenario
from conformance.scenarios.new_processes import loaded_by

SECONDS = 120.0  # that a process may take, most of which go to importing torch

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
    """What a process does last."""

    code: str
    exit_code: int
    says: float  # the number that it writes to a file before or while it ends


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

#: Processes that fork others, which drop what they inherit of the device and do nothing else with it.
FORKS = {
    "child_drops": Ending(
        """
import gc, os, signal

kept = [x, x.t(), x * 2, torch.ones(1 << 16).to(device), (x.clone().requires_grad_() * x).sum()]
with contextlib.suppress(RuntimeError, NotImplementedError, AttributeError, TypeError):  # not every device has them
    kept += [torch.Generator(device), torch.ones(1000).pin_memory()]
    kept += [torch.Event(device), torch.Stream(device)]
    kept[-2].record(kept[-1])
child = os.fork()
if child == 0:
    signal.alarm(15)  # seconds until a child that waits is killed
    try:
        kept.clear()
        del x
        gc.collect()
        torch.manual_seed(5)
        os._exit(7 if torch.arange(9.0).sum() == 36 else 8)
    finally:
        os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
say(kept[0] + kept[2] if code == 7 else torch.tensor(float(code)))
""",
        exit_code=0,
        says=3 * 4096.0,
    ),
    "workers_drop": Ending(
        """
import gc, multiprocessing

kept = [torch.ones(1 << 16).to(device) for _ in range(8)]


def work(n):
    kept.clear()
    gc.collect()
    return float(torch.full((8,), float(n)).sum())


with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map_async(work, range(4)).get(15)  # seconds
say(torch.tensor(sum(found) + sum(float(one.sum()) for one in kept) / (1 << 16)))
""",
        exit_code=0,
        says=8.0 * (0 + 1 + 2 + 3) + 8,
    ),
}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def processes_end(device: str) -> Results:
    """A process ends as it wants to while work is in flight, objects of the device live, and functions run at exit."""
    return _ends(ENDINGS, device)


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def forked_processes_end(device: str) -> Results:
    """A forked process that only drops what it inherits of the device ends well, and takes nothing from its parent."""
    if sys.platform != "linux":
        raise NotOffered("processes that are forked with all that their parent has")
    return _ends(FORKS, device)


def _ends(endings: Mapping[str, Ending], device: str) -> Results:
    """Return the exit code of each process, and what it said. On CPU, that is what they want to."""
    if torch.device(device).type == "cpu":
        found = {name: (ending.exit_code, ending.says) for name, ending in endings.items()}
    else:
        found = {name: ended(ending, device) for name, ending in endings.items()}
    codes = {f"{name}.exit_code": torch.tensor(code) for name, (code, _) in found.items()}
    return codes | {f"{name}.says": torch.tensor(number) for name, (_, number) in found.items()}


def ended(ending: Ending, device: str) -> tuple[int, float]:
    """Return a process's exit code, minus a signal's number if it died of it, and what it said; NaN if nothing.

    Raises NotOffered if a new process that imports the device's module does not know the device, and AssertionError if
    the process does not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "said"
        begin = _BEGIN.format(module=loaded_by(device), device=device, file=str(file))
        try:
            command = [sys.executable, "-c", begin + ending.code]
            code = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False).returncode
        except subprocess.TimeoutExpired as e:
            raise AssertionError(f"a process has not ended within {SECONDS:.0f} s") from e
        if not file.exists():
            raise NotOffered("the device in a new process that imports its module")
        said = float("nan")
        with suppress(OSError, ValueError):
            said = float(file.read_text(encoding="utf-8"))
        return code, said
