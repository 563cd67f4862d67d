"""Generates the samples of every axis, and writes them beside the corpus."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from conformance.corpus import reader
from conformance.corpus.codec import encode
from conformance.corpus.model import Sample
from conformance.corpus.reader import DATA, GENERATED, Corpus
from conformance.corpus.vary import hard_values, sizes, variants
from conformance.corpus.vary.trial import Trials, generate
from conformance.inventory import Overload, inventory

AXES = (sizes.generate, hard_values.generate, variants.generate)


def build(where: Path = DATA, progress: Callable[[str], None] = lambda _: None) -> str:
    """Write the generated samples of the corpus in ``where``. Returns a summary."""
    corpus = reader.load(where, generated=False)
    corpus.load_values()
    known = {o.name: o for o in inventory("CPU")}
    wanted = [o for o in corpus.overloads if o in known]
    found: dict[str, list[Sample]] = {}
    jobs = len(os.sched_getaffinity(0))
    for overload, samples in generate(wanted, corpus, partial(_generated, corpus, known), jobs):
        found[overload] = sorted(samples, key=lambda s: s.name)
        if len(found) % 100 == 0:
            progress(f"{len(found)} of {len(wanted)} overloads")
    _write(where / GENERATED, corpus, {o: found[o] for o in sorted(found) if found[o]})
    return _summary(found)


def _generated(corpus: Corpus, known: Mapping[str, Overload], overload: str, trials: Trials) -> list[Sample]:
    samples = corpus.samples(overload)
    return [s for axis in AXES for s in axis(known[overload], samples, trials, corpus)]


def _write(path: Path, corpus: Corpus, found: dict[str, list[Sample]]) -> None:
    sets = sorted({s.dtypes for rows in found.values() for s in rows})
    position = {s: i for i, s in enumerate(sets)}
    header = {"corpus": corpus.hash, "dtype_sets": sets, "overloads": list(found)}
    lines = [header, *([encode(s, position[s.dtypes]) for s in rows] for rows in found.values())]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _summary(found: dict[str, list[Sample]]) -> str:
    of = Counter(s.axis for rows in found.values() for s in rows)
    overloads = Counter(axis for rows in found.values() for axis in {s.axis for s in rows})
    return "; ".join(f"{axis}: {of[axis]} samples of {overloads[axis]} overloads" for axis in sorted(of))
