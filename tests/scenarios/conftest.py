"""The reference NPU, for tests that enable a planted fault in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def refnpu() -> Iterator[Any]:
    testing = pytest.importorskip("refnpu.testing")
    yield testing
    testing.set_fault(None)
