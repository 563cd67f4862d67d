"""The map of OpInfos to overloads for the installed torch and the pinned samples."""

from __future__ import annotations

from collections.abc import Iterator

from conformance import torch_versions
from conformance.corpus import reader
from conformance.corpus.model import SampleName
from conformance.device_tests.mapping import OpInfoMap
from conformance.torch_versions.device_tests import opinfo_names


def opinfo_map() -> OpInfoMap:
    """Return the map. Raises CorpusError; ImportError if torch cannot load its own tests."""
    corpus = reader.load(generated=False)
    recorded = frozenset(corpus.overloads)

    def labels(overload: str) -> Iterator[str]:
        for sample in corpus.recorded(overload) if overload in recorded else ():
            name = SampleName.parse(sample.name)
            if name.source == "opinfo":
                yield name.label

    schemas = torch_versions.schemas()
    outs = {name for name, schema in schemas.items() if torch_versions.has_out(str(schema))}
    return OpInfoMap(opinfo_names(), frozenset(schemas), outs, labels)
