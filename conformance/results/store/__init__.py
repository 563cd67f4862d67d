"""Writing and reading of results. Only this package knows the file formats."""

from conformance.results.store.journal import OBSERVATIONS, SUMMARY, Run, Writer, find, read, read_summary
from conformance.results.store.manifest import Manifest, StoreError
from conformance.results.store.runs import RUNS, Closed, every_series, how_to_have_one, limited, shown_series

__all__ = [
    "OBSERVATIONS", "RUNS", "SUMMARY", "Closed", "Manifest", "Run", "StoreError", "Writer",
    "every_series", "find", "how_to_have_one", "limited", "read", "read_summary", "shown_series",
]  # fmt: skip
