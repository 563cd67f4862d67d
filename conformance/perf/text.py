"""Measured runs as text: the end of a run, the differences of two, the ranking. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.perf.diff import Change, Compared, Difference
from conformance.perf.model import End, Limits, Machine, Record
from conformance.perf.ranking import Rank
from conformance.support.wording import amount, seconds


def limits(machine: Machine) -> list[str]:
    """Return a line for each side."""
    return [f"limits of {name}: {_limits(of)}" for name, of in (("the device", machine.device), ("CPU", machine.cpu))]


def _limits(of: Limits) -> str:
    launch = "-" if of.launch is None else seconds(of.launch)
    return f"{amount(of.bandwidth, 'B/s')}, {amount(of.flops, 'FLOP/s')}, copy of one element {launch}"


def ending(records: Sequence[Record], counts: Mapping[End, int]) -> list[str]:
    """Return the numbers of a run, which add up to its cases, and the cases that ended badly."""
    lines = [f"{r.key}: {r.end}: {r.reason}" for r in records if r.end in (End.CRASH, End.TIMEOUT, End.ERROR)]
    parts = " + ".join(f"{counts.get(end, 0)} {end}" for end in End)
    return [*lines, f"cases: {sum(counts.values())} = {parts}"]


def measured(record: Record) -> str:
    """Return the line of a measured case."""
    device, host, cpu = record.device, record.host, record.cpu
    spread = f"[{seconds(device.low)}, {seconds(device.high)}]"
    return (
        f"{record.key} {record.route}: device {seconds(device.median)} {spread}, returns after {seconds(host.median)}, "
        f"CPU {seconds(cpu.median)}, {record.ratio:.3g} times CPU{_traffic(record)}"
    )


def _traffic(record: Record) -> str:
    work = record.work
    if work is None:
        return ""
    parts = [f"{amount(work.bytes / record.device.median, 'B/s')}"] if work.bytes else []
    parts += [amount(work.flops / record.device.median, "FLOP/s")] if work.flops else []
    if work.fallback_calls:
        parts.append(f"{work.fallback_calls} fallback calls")
    parts += [f"a fallback copies {amount(work.copied, 'B')}"] if work.copied else []
    return "".join(f", {part}" for part in parts)


def difference(found: Difference) -> Iterator[str]:
    """Yield the lines of a comparison: the slower cases first, and the number of unchanged cases."""
    for change in (Change.SLOWER, Change.LOST, Change.FASTER, Change.GAINED, Change.OTHER):
        cases = found.of(change)
        if cases:
            yield f"{change}: {len(cases)} ({change.meaning})"
            yield from (f"  {_compared(case)}" for case in cases)
    yield f"no difference beyond noise: {len(found.of(Change.SAME))}"
    if found.only_old or found.only_new:
        yield f"not compared: {found.only_old} cases of the old run alone, {found.only_new} of the new run alone"


def _compared(case: Compared) -> str:
    if case.interval is None:
        return f"{case.key}: {_end(case.old)} -> {_end(case.new)}"
    i = case.interval
    return (
        f"{case.key} {case.new.route}: {i.ratio:.3g} times [{i.low:.3g}, {i.high:.3g}], "
        f"{case.old.ratio:.3g} -> {case.new.ratio:.3g} times CPU, device now {seconds(case.new.device.median)}"
    )


def _end(record: Record) -> str:
    return f"{record.end}: {record.reason}" if record.reason else str(record.end)


def ranking(ranks: Sequence[Rank], most: int) -> Iterator[str]:
    """Yield a line for each of the first ``most`` cases, and a line with the number of the others."""
    total = sum(rank.lost for rank in ranks)
    for number, rank in enumerate(ranks[:most], start=1):
        yield f"{number:>3}. {_ranked(rank, total)}"
    if len(ranks) > most:
        yield f"... and {len(ranks) - most} more; --most {len(ranks)} lists them"


def _ranked(rank: Rank, total: float) -> str:
    record = rank.record
    share = f"{100 * rank.lost / total:.1f} %" if total else "0 %"
    calls = "" if rank.calls == 1 else f" in {rank.calls:g} calls"
    return (
        f"{record.key} {record.route}: {seconds(rank.lost)} lost{calls} ({share}); "
        f"{seconds(record.device.median)} a call, attainable {seconds(rank.attainable)} ({rank.bound}), "
        f"{record.ratio:.3g} times CPU"
    )
