"""The one writer and reader of results; nothing outside this package knows a format."""

from conformance.results.store.journal import OBSERVATIONS, SUMMARY, Run, Writer, find, read, read_summary
from conformance.results.store.manifest import Manifest, StoreError
from conformance.results.store.runs import RUNS, Closed, lanes

__all__ = [
    "OBSERVATIONS", "RUNS", "SUMMARY", "Closed", "Manifest", "Run", "StoreError", "Writer", "find", "lanes",
    "read", "read_summary",
]  # fmt: skip
