"""Imports what a forked process needs to compile a graph; torch asks backends for code generators later."""

from __future__ import annotations

from conformance.torch_versions import compiler_tools
from conformance.triage.compiled import checking, recording, worker

__all__ = ["checking", "recording", "worker"]

compiler_tools.import_compiler()
