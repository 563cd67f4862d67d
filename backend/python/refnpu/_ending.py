"""The work to finish before Python ends."""

from __future__ import annotations

import contextlib
from pathlib import Path

import torch

from refnpu import _C


def finish_gradients() -> None:
    """Wait until torch's threads for gradients have released the objects of the last ``backward()``.

    Each device has such a thread. In torch 2.13 (not yet in 2.8) the thread releases Python objects after
    ``backward()`` has returned. If Python has ended by then, the process aborts. A thread takes another task only after
    the release, so each thread gets an empty task.
    """
    if not _C.device_used() or not _has_threads():
        return
    for index in range(_C.device_count()):
        with contextlib.suppress(Exception):  # a failing device was reported before, or nobody reads its results
            x = torch.empty(0, device=torch.device("npu", index), requires_grad=True)
            # The engine itself: torch.autograd.backward would hand the thread Python objects again.
            torch.autograd.Variable._execution_engine.run_backward(
                (x.view(0),), (torch.empty_like(x),), False, False, (), allow_unreachable=True, accumulate_grad=True
            )


def _has_threads() -> bool:
    """Return whether this process has torch's threads for gradients, which are found by their names."""
    return any(path.read_text().startswith("pt_autograd") for path in Path("/proc/self/task").glob("*/comm"))
