"""The latest measured run of each lane as data for the page: its ranking, and points for the roofline. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from conformance.perf import ranking
from conformance.perf.ranking import Rank
from conformance.perf.store import PerfRun
from conformance.report.cells import Words

MOST = 3000  # cases of a run on the page, those with the most lost seconds


def runs(found: Iterable[PerfRun]) -> list[dict[str, Any]]:
    """Return the data of each run, in the order of ``found``."""
    return [_run(run) for run in found]


def _run(run: PerfRun) -> dict[str, Any]:
    ranks = ranking.rank(run.records, run.machine)
    words = Words()
    return {
        "name": run.name, "lane": run.manifest.lane, "cpu": run.manifest.cpu, "threads": run.manifest.threads,
        "device": asdict(run.machine.device), "host": asdict(run.machine.cpu),
        "best": asdict(ranking.best(run.machine)),
        "measured": len(ranks), "cases": len(run.records), "lost": sum(r.lost for r in ranks),
        "rows": [_row(rank, words) for rank in ranks[:MOST]], "words": words.texts,
    }  # fmt: skip


def _row(rank: Rank, words: Words) -> list[Any]:
    """Return overload, size, route and bound as numbers of words, then seconds, bytes, operations and the ratio."""
    record = rank.record
    work = record.work
    said = (record.key.overload, str(record.key.size), record.route, str(rank.bound))
    times = (record.device.median, record.cpu.median, rank.attainable, rank.lost)
    return [
        *map(words.number, said), *(float(f"{t:.4g}") for t in times), work.bytes if work else 0,
        (work.flops if work else None) or 0, float(f"{record.ratio:.4g}"), work.copied if work else 0,
    ]  # fmt: skip
