"""Merging the shards of a run: the check that they belong together, the manifest and the summary. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from conformance.records import Observation
from conformance.results import resume, summary
from conformance.results.shards import Shard
from conformance.results.store import Manifest
from conformance.results.store.manifest import MACHINE, began, run_name
from conformance.results.summary import RunFacts, Target
from conformance.support.wording import some

# The fields that may differ between the shards of a run, which may run on several machines.
_OWN = {
    "arguments": (), "cells": "", "collected": 0, "expected": "", "run": "", "shard": "", **dict.fromkeys(MACHINE, "")
}  # fmt: skip
_NAMED = 3


class MergeError(ValueError):
    """Runs that are not the shards of one run. The message is one line and names the difference."""


@dataclass(frozen=True, slots=True)
class Part:
    """A closed shard."""

    manifest: Manifest
    summary: dict[str, Any]
    observations: tuple[Observation, ...]


def check(parts: Sequence[Part]) -> None:
    """Raise MergeError unless the shards belong to one run and contain each of its cells once."""
    for part in parts:
        _check_part(part)
    first, *others = parts
    for part in others:
        _check_alike(first, part)
    _check_shards(parts)
    cells = _cells(parts)
    split, lane = first.summary["shard"], first.manifest.lane
    if len(cells) != split["of"]:
        raise MergeError(f"{lane}: {len(cells)} of {split['of']} cells: {_lacking(parts)}")
    if resume.fingerprint(cells) != split["cells"]:
        what = f"the {split['of']} cells are not those that were split"
        raise MergeError(f"{lane}: {what}; are these shards of two different runs?")


def merged(parts: Sequence[Part]) -> tuple[Manifest, dict[str, Any], tuple[Observation, ...]]:
    """Return the manifest, the summary and the observations of the merged run. Call :func:`check` first.

    Wall time and collection time are those of the slowest shard; CPU time is the sum.
    """
    observations = tuple(sorted((o for p in parts for o in p.observations), key=lambda o: o.cell.fields()))
    manifest = _manifest(parts)
    first = parts[0].summary
    facts = RunFacts.of(
        manifest,
        collected=sum(p.summary["collected"] for p in parts),
        wall_s=max(p.summary["wall_s"] for p in parts),
        cpu_s=sum(p.summary["cpu_s"] for p in parts),
        collect_s=max(p.summary["collect_s"] for p in parts),
        schemas={overload: (recorded, here) for overload, (recorded, here) in first["schemas"].items()},
    )
    targets = [Target(*target) for target in first["shard"]["targets"]]
    result = summary.summarize(facts, observations, targets)
    result["limits"] = _limits([part.summary for part in parts])
    result["routes"] = first.get("routes", {})
    return manifest, result, observations


def _limits(summaries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the broken primitives of all shards, with the sum of the cells that need each."""
    found: dict[str, dict[str, Any]] = {}
    for limit in (limit for shard in summaries for limit in shard.get("limits", ())):
        known = found.setdefault(limit["primitive"], {**limit, "cells": 0})
        known["cells"] += limit["cells"]
    return list(found.values())


def run_of(manifests: Sequence[Manifest]) -> str:
    """Return the name of the merged run. It depends on the shards only; its time is the start of the last shard."""
    names = sorted(m.run for m in manifests)
    token = hashlib.sha256("\n".join(names).encode()).hexdigest()[:6]
    return run_name(manifests[0].series, max(filter(None, map(began, names))), token)


def facts(manifest: Manifest) -> tuple[Any, ...]:
    """Return the values that all shards of one run share, as a hashable key."""
    return (*asdict(replace(manifest, **_OWN)).values(), Shard.parse(manifest.shard).count)  # type: ignore[arg-type]  # a mapping of several types


def _check_part(part: Part) -> None:
    run, shard = part.manifest.run, part.manifest.shard
    if not shard or "shard" not in part.summary:
        raise MergeError(f"{run}: is not a shard; expected runs of pytest with --shard I/N")
    if len(part.observations) != part.manifest.collected:
        raise MergeError(
            f"{run}: {len(part.observations)} of {part.manifest.collected} cells observed; the shard is not complete"
        )
    if resume.fingerprint(str(o.cell) for o in part.observations) != part.manifest.cells:
        raise MergeError(f"{run}: its cells are not those that shard {shard} had to run")


def _check_shards(parts: Sequence[Part]) -> None:
    runs: dict[str, str] = {}
    for part in parts:
        if (shard := part.manifest.shard) in runs:
            raise MergeError(f"shard {shard} is given twice: {runs[shard]} and {part.manifest.run}")
        runs[shard] = part.manifest.run


def _cells(parts: Sequence[Part]) -> list[str]:
    """Return the ids of all cells. Raises MergeError if two shards have the same cell."""
    where: dict[str, str] = {}
    for part in parts:
        for o in part.observations:
            if (cell := str(o.cell)) in where:
                raise MergeError(f"{cell} is in shard {where[cell]} and in shard {part.manifest.shard}")
            where[cell] = part.manifest.shard
    return list(where)


def _check_alike(one: Part, other: Part) -> None:
    before, after = asdict(replace(one.manifest, **_OWN)), asdict(replace(other.manifest, **_OWN))  # type: ignore[arg-type]  # a mapping of several types
    differing = [f"{name} {before[name]} and {after[name]}" for name in before if before[name] != after[name]]
    counts = Shard.parse(one.manifest.shard).count, Shard.parse(other.manifest.shard).count
    if counts[0] != counts[1]:
        differing.append(f"split in {counts[0]} and in {counts[1]}")
    for key, what in (("cells", "other cells were split"), ("targets", "other overloads are counted")):
        if not differing and one.summary["shard"][key] != other.summary["shard"][key]:
            differing.append(what)
    if differing:
        raise MergeError(f"{one.manifest.run} and {other.manifest.run} are not of one run: {'; '.join(differing)}")


def _lacking(parts: Sequence[Part]) -> str:
    shards = [Shard.parse(p.manifest.shard) for p in parts]
    count, given = shards[0].count, {shard.index for shard in shards}
    lacking = [str(Shard(i, count)) for i in range(1, count + 1) if i not in given]
    return f"shard {some(lacking, _NAMED)} is missing" if lacking else "no shard has the others"


def _manifest(parts: Sequence[Part]) -> Manifest:
    manifests = [p.manifest for p in parts]
    machines: dict[str, Any] = {name: ", ".join(sorted({getattr(m, name) for m in manifests})) for name in MACHINE}
    return replace(
        manifests[0],
        run=run_of(manifests),
        collected=sum(m.collected for m in manifests),
        cells=resume.fingerprint(str(o.cell) for p in parts for o in p.observations),
        **machines,
        arguments=_without_shard(manifests[0].arguments),
        shard="",
        split_by="",
    )


def _without_shard(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments of a run without --shard and --shard-by."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in ("--shard", "--shard-by"):
            next(words, "")
        elif not word.startswith(("--shard=", "--shard-by=")):
            kept.append(word)
    return tuple(kept)
