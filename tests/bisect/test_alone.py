"""Searches that prepare versions in the same cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.bisect.alone import InUse, alone


def test_a_second_search_in_a_cache_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(InUse, match="another search prepares versions there"), alone(tmp_path):
        pass
    with alone(tmp_path):
        pass
