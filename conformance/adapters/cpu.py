"""CPU as a device. A run must pass: each failure is a false alarm of the suite.

Both sides run with the settings of the process. ``CONFORMANCE_CPU_THREADS`` is the number of threads of an op, and
``CONFORMANCE_CPU_ONEDNN=0`` disables oneDNN.
"""

from __future__ import annotations

import os

from conformance.adapters.model import ShippedAdapter

THREADS, ONEDNN = "CONFORMANCE_CPU_THREADS", "CONFORMANCE_CPU_ONEDNN"


class Adapter(ShippedAdapter):
    """The CPU. Without the variables, ops use one thread, and oneDNN if torch has it."""

    NAME, DEVICE = "cpu", "cpu"
    INSTALL = "every torch has it"

    def __init__(self) -> None:
        super().__init__()
        asked = os.environ.get(THREADS, "1")
        if not asked.isdecimal() or int(asked) < 1:
            raise ValueError(f"{THREADS}={asked}: expected a number of threads, at least 1")
        self.threads = int(asked)
        self.isolation = "spawn" if self.threads > 1 else "fork"  # type: ignore[misc]  # a forked process lacks its parent's threads
        self._onednn = os.environ.get(ONEDNN, "1") != "0"
        if not self._onednn:
            import torch

            torch.backends.mkldnn.set_flags(_enabled=False)

    def environment(self) -> str:
        """Return the name of the environment, e.g. ``threads1`` or ``threads2_no_onednn``."""
        return f"threads{self.threads}" + ("" if self._onednn else "_no_onednn")

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments with other numbers of threads, and without oneDNN."""
        return {"threads2": {THREADS: "2"}, "threads7": {THREADS: "7"}, "no_onednn": {ONEDNN: "0"}}
