"""A test whether ``conformance huge`` finds faults that show only in huge tensors: ``huge_faults.py``.

Each fault of the class ``huge`` is awake in one run of two programs: a program that must fail, and one that must pass.
Then every program runs without a fault. The benchmark prints the results and their seconds. It
needs 16 GiB of memory.
"""

from __future__ import annotations

import sys
import time

from refnpu import testing

from conformance import backends
from conformance.huge import runner

# The program that finds each fault, and a program with other kernels.
FAULTS = {
    "fill_count_in_32_bits": ("fill", "clone"),
    "copy_bytes_in_32_bits": ("clone_half", "fill"),
    "index_offset_in_32_bits": ("index", "clone"),
    "gemm_row_in_32_bits": ("matmul_of_huge", "fill"),
    "nonzero_position_in_32_bits": ("positions_that_are_not_zero", "fill"),
}
TIMEOUT = 1800.0


def tried(name: str, wrong: bool) -> bool:
    """Run a program, print its result, and return whether it is the expected one."""
    started = time.perf_counter()
    result = runner.run(name, backends.find("refnpu"), TIMEOUT)
    print(f"  {result.text()} ({time.perf_counter() - started:.0f} s)", flush=True)
    return result.failed == wrong and (result.ran or not wrong)


def main() -> int:
    """Return 0 if every fault is found and no program fails otherwise."""
    right = True
    for fault, (fails, holds) in FAULTS.items():
        print(fault, flush=True)
        testing.set_fault(fault)
        right &= tried(fails, wrong=True)
        right &= tried(holds, wrong=False)
        testing.set_fault(None)
    print("no fault", flush=True)
    for name in runner.names():
        right &= tried(name, wrong=False)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
