"""Why a fault survives the suite."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "alignment_ignored": "no op asks for an alignment: npuMallocAligned is the driver's users', whose tests find it",
    "late_error_lost": "cells wait for each call; the tests of the driver find it",
    "late_error_repeated": "cells wait for each call; the tests of the driver find it",
}
