"""Why the first cause of a fault is not the kernel in which the fault lies, or why no cell fails."""

from __future__ import annotations

REASONS: dict[str, str] = {}
