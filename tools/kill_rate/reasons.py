"""The reasons why faults survive the suite."""

from __future__ import annotations

_LATE = "shows where work is late, of which the lane `late` runs the quick programs alone; the program"

REASONS: dict[str, str] = {
    "alignment_ignored": "no op asks for an alignment: npuMallocAligned is the driver's users', whose tests find it",
    "late_error_lost": "cells wait for each call; the tests of the driver find it",
    "late_error_repeated": "cells wait for each call; the tests of the driver find it",
    "normal_without_spread_draws_nothing": "nothing promises where a draw with a deviation of 0 leaves the generator",
    "cdist_by_products": "no sample has two operands that are near each other and far from zero; each is moved alone",
    "gemm_bfloat16_rounds_before_self": "its error is within the bound of rounding",
    "group_reads_default_stream": f"{_LATE} distributed:collectives_on_a_stream, which is slow, finds it",
    "fork_not_noticed": f"{_LATE} devices:forked_process, which is slow, finds it",
    "compiled_on_default_stream": f"{_LATE} compiled_calls:on_a_stream, which compiles, finds it",
    "compiled_host_tensors_not_kept": f"{_LATE} compiled_calls:scalars_of_the_host, which compiles, finds it",
}
