"""Why a fault survives the suite, in a person's words."""

from __future__ import annotations

REASONS: dict[str, str] = {}
