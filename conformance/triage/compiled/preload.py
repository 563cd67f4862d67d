"""The imports that a forked process needs to compile a graph. torch asks backends for code generators later."""

from __future__ import annotations

from conformance.support.signals import ignore_interruptions
from conformance.torch_versions import compiler_tools
from conformance.triage.compiled import checking, recording, worker

__all__ = ["checking", "recording", "worker"]

ignore_interruptions()  # Ctrl-C in a terminal reaches all processes; the parent ends the others
compiler_tools.import_compiler()
