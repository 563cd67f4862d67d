"""The reasons why the first cause of a fault is not the kernel in which the fault lies, or why no cell fails.

If no cell fails with a fault, and this table has no reason, the reason comes from the measurement.
"""

from __future__ import annotations

_LATE = "it has no effect in this lane, where work is done when a call returns"

REASONS: dict[str, str] = {
    "bf16_accumulates_in_bf16": "the smoke tier has no cell in a dtype that shows it",
    "table_unlocked": "a cell calls from one thread",
    "any_counts_bool_two": "no cell stores a bool as another byte than 0 and 1; a scenario does",
    "copy_to_host_not_awaited": _LATE,
    "scalar_to_host_not_awaited": _LATE,
    "crash_in_some_processes": (
        "a process dies or lives by its id; the one that died ran a single cell, of a composite that calls masked_fill_"
    ),
    "seed_ignored": "it lies in the generator, outside of all operators: each random operator stands for itself",
    "conj_bit_ignored": (
        "the smoke tier has no complex cell of a copy; the failing composites call three kernels without cells of "
        "their own, and the last of them is named. The bring-up gate finds it"
    ),
    "cumsum_wrong_dtype": "only one cell fails, of a composite that calls cumprod, whose own cells pass",
    "matmul_beta_zero_keeps_nan": "only cells of one composite fail, which calls addmv, whose own cells pass",
    "gemm_transposed_gap_ignored": "only cells of one composite fail, which calls mm and bmm, whose own cells pass",
    "resize_forgets_offset": "it damages memory: 14 cells of 13 overloads fail, and most call no operator that resizes",
}
