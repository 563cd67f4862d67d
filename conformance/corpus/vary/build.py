"""Generation of the samples of every axis, which are written next to the corpus."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from conformance.corpus import reader
from conformance.corpus.codec import encode
from conformance.corpus.model import Sample
from conformance.corpus.reader import GENERATED, Corpus
from conformance.corpus.values import kind_of
from conformance.corpus.vary import (
    apart,
    broadcasting,
    chance,
    channels,
    composites,
    configurations,
    configured,
    counts,
    dims,
    dtypes,
    empty_in_lists,
    extremes,
    forms,
    grids,
    hard_values,
    index_lists,
    large,
    largest,
    magnitudes,
    one_dtype,
    ones,
    repeats,
    rows,
    sizes,
    sweeps,
    trial,
    variants,
    vectors,
)
from conformance.corpus.vary.generation import Generate, generate
from conformance.corpus.vary.sources import usable
from conformance.corpus.vary.trial import Trials
from conformance.inventory import Overload, inventory

AXES = (
    sizes.generate, counts.generate, large.generate, hard_values.generate, rows.generate, variants.generate,
    variants.of_other_ranks, dims.generate, index_lists.generate, vectors.generate, ones.generate, apart.generate,
    repeats.generate, configured.generate, grids.generate, composites.generate, sweeps.generate, largest.generate,
    empty_in_lists.generate, chance.generate, channels.generate, configurations.generate, broadcasting.generate,
    magnitudes.generate, extremes.generate, one_dtype.generate,
)  # fmt: skip

Progress = Callable[[str], None]
LayoutsOf = Callable[[Sample], Mapping[str, Iterable[str]]]  # the layouts of a sample's cells, with their dtypes


class GenerationError(RuntimeError):
    """An error in generating samples of some overloads. Their old samples are kept, and those of others written."""


def build(
    where: Path,
    overloads: Collection[str],
    layouts_of: LayoutsOf,
    progress: Progress = lambda _: None,
    anew: bool = False,
) -> str:
    """Generate samples of some overloads of the corpus in ``where``, and write them. Returns a summary.

    The generated samples of other overloads do not change. Those of the given overloads are kept too, unless ``anew``,
    because a sample of earlier rules may find a fault that no other sample finds. A new sample replaces an earlier
    sample of the same name. ``layouts_of`` returns the layouts whose cells have a generated sample, with the dtypes of
    these cells. Raises GenerationError, after all other samples are written, if an overload has an error.
    """
    corpus = reader.load(where, generated=False)
    known = {o.name: o for o in inventory("CPU")}
    try:
        kept = reader.load(where)
    except reader.CorpusError:  # the generated samples belong to another index, or are damaged
        if not set(overloads) >= set(corpus.overloads):
            raise
        kept = corpus
    wanted = [o for o in overloads if o in known]
    make = partial(_generated, corpus, kept, anew, known)
    return _written(where, kept, wanted, make, layouts_of, progress, replaced=anew)


def check(where: Path, overloads: Collection[str], layouts_of: LayoutsOf, progress: Progress = lambda _: None) -> str:
    """Try the generated samples of some overloads again, and write those that still run. Returns a summary."""
    corpus = reader.load(where)
    known = {o.name for o in inventory("CPU")}
    wanted = [o for o in overloads if o in known]
    return _written(where, corpus, wanted, partial(_still_running, corpus), layouts_of, progress, replaced=True)


def _written(
    where: Path,
    corpus: Corpus,
    wanted: Sequence[str],
    make: Generate,
    layouts_of: LayoutsOf,
    progress: Progress,
    replaced: bool,
) -> str:
    """Write the samples that ``make`` gives for the wanted overloads, and those of the corpus. Returns a summary.

    ``replaced``: drop the corpus' samples of a wanted overload when ``make`` gives new ones. The samples made so far
    are also written if an exception such as KeyboardInterrupt ends the work, which takes hours for all overloads.
    """
    corpus.load_values()
    found = {o: [s for s in corpus.samples(o) if s.axis] for o in corpus.overloads}
    failed: list[str] = []
    made = generate(wanted, corpus, make, len(os.sched_getaffinity(0)))
    try:
        for done, (overload, samples) in enumerate(made, 1):
            if samples is None:
                failed.append(overload)
            else:
                earlier = {} if replaced else {s.name: s for s in found[overload]}
                samples_by_name = earlier | {s.name: s for s in samples}
                found[overload] = [samples_by_name[name] for name in sorted(samples_by_name)]
            if done % 10 == 0:
                progress(f"{done} of {len(wanted)} overloads")
    finally:
        write(where, {o: found[o] for o in sorted(found) if found[o]}, layouts_of)
    if failed:
        names = ", ".join(sorted(failed))
        raise GenerationError(f"no samples could be generated of {names} (see above); those that there were are kept")
    return _summary(found)


def _still_running(corpus: Corpus, overload: str, trials: Trials) -> list[Sample]:
    """Return the generated samples of an overload that run or raise as before, with the dtypes in which they do."""
    usual = trials.untimed()  # they were fast enough when they were generated
    larger = usual.within(largest.MOST_ELEMENTS, trial.MOST_SECONDS)
    found = []
    for sample in corpus.samples(overload):
        if sample.axis:
            trials = larger if sample.axis == largest.AXIS else usual
            runs = trials.raises if sample.raises else trials.run
            dtypes = tuple(d for d in sample.dtypes if runs(sample, d))
            found += [replace(sample, dtypes=dtypes)] if dtypes else []
    return _within(found, corpus.recorded(overload), trials)


def _within(found: Sequence[Sample], recorded: Sequence[Sample], trials: Trials) -> list[Sample]:
    """Return the samples whose results do not depend on the gaps of strided arguments.

    CPU does not check the indices of every op, so an index may leave its dimension. If the results of a recorded sample
    depend on gaps, all samples are returned.
    """
    if any(trials.reads_gaps(s, s.dtypes[0]) for s in recorded if not s.raises):
        return list(found)
    return [s for s in found if s.raises or not trials.reads_gaps(s, s.dtypes[0])]


def _generated(
    corpus: Corpus, kept: Corpus, anew: bool, known: Mapping[str, Overload], overload: str, trials: Trials
) -> list[Sample]:
    samples = list(corpus.samples(overload))
    others = list(dtypes.generate(known[overload], samples, trials, corpus))
    kinds = {kind_of(s.base) for s in samples if usable(s)}
    samples += [s for s in others if kind_of(s.base) not in kinds]  # vary these too
    varied = [s for axis in AXES for s in axis(known[overload], samples, trials, corpus)]
    found = [*(replace(s, axis=dtypes.AXIS) for s in others), *varied]
    own = [*(corpus if anew else kept).samples(overload), *found]  # the samples that the overload will have
    found += forms.generate(known[overload], own, list(known.values()), kept.samples, trials)
    return _within(found, corpus.recorded(overload), trials)


def write(where: Path, found: Mapping[str, Sequence[Sample]], layouts_of: LayoutsOf) -> None:
    """Write the generated samples of overloads beside the corpus in a directory."""
    sets = sorted({s.dtypes for rows in found.values() for s in rows})
    position = {s: i for i, s in enumerate(sets)}
    plain = {overload: [s for s in rows if not s.own_kernel] for overload, rows in found.items()}
    own_kernel = {overload: [s for s in rows if s.own_kernel] for overload, rows in found.items()}
    header = {
        "corpus": reader.load(where, generated=False).hash,
        "dtype_sets": sets,
        "overloads": list(found),
        "cells": {overload: _cells(rows, layouts_of) for overload, rows in plain.items()},
        "own_kernel_cells": {overload: _cells(rows, layouts_of) for overload, rows in own_kernel.items() if rows},
    }
    lines = [header, *([encode(s, position[s.dtypes]) for s in rows] for rows in found.values())]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (where / GENERATED).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _cells(samples: Sequence[Sample], layouts_of: LayoutsOf) -> dict[str, str]:
    """Return for each layout the dtypes of its samples, as words."""
    found: dict[str, set[str]] = {}
    for sample in samples:
        for name, in_dtypes in layouts_of(sample).items():
            found.setdefault(name, set()).update(in_dtypes)
    return {name: " ".join(sorted(found[name])) for name in sorted(found)}


def _summary(found: dict[str, list[Sample]]) -> str:
    of = Counter(s.axis for rows in found.values() for s in rows)
    overloads = Counter(axis for rows in found.values() for axis in {s.axis for s in rows})
    return "; ".join(f"{axis}: {of[axis]} samples of {overloads[axis]} overloads" for axis in sorted(of))
