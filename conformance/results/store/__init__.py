"""Writing and reading of results. Only this package knows the file formats."""

from conformance.results.store.journal import OBSERVATIONS, SUMMARY, Run, Writer, find, read, read_summary
from conformance.results.store.manifest import Manifest, StoreError
from conformance.results.store.runs import RUNS, Closed, lanes

__all__ = [
    "OBSERVATIONS", "RUNS", "SUMMARY", "Closed", "Manifest", "Run", "StoreError", "Writer", "find", "lanes",
    "read", "read_summary",
]  # fmt: skip
