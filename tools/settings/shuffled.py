"""A pytest plugin that shuffles the tests, in the same order in every worker."""

from __future__ import annotations

import random

import pytest

SEED = 20261122


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the collected tests."""
    random.Random(SEED).shuffle(items)
