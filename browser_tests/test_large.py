"""A report of 150,000 cells in two lanes: all are found, and drawing stays small. For times, see benchmarks/report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import report as benchmark
from tools import browser

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ON_A_SCREEN = 1000  # elements of a page, including the rows of a table and their parts


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark.built(tmp_path_factory.mktemp("large"), benchmark.CELLS)[0]


def drawn(driver: Chrome) -> int:
    return int(driver.execute_script("return document.querySelectorAll('*').length"))


def test_no_view_draws_more_than_a_screen_shows(driver: Chrome, large: Path) -> None:
    browser.look(driver, 1680, 1050)
    for view in ("overview", "map", "cells", "new"):
        browser.visit(driver, large, f"#/{view}")
        assert drawn(driver) < ON_A_SCREEN, view


def test_every_filter_counts_all_its_cells_and_draws_a_screen_of_them(driver: Chrome, large: Path) -> None:
    """One cell in a hundred fails, and only its message has the searched word."""
    browser.look(driver, 1680, 1050)
    browser.visit(driver, large, "#/cells")
    shown = {}
    for name, query in benchmark.FILTERS.items():
        benchmark.filtered(driver, query)
        shown[name] = driver.execute_script("return report.shown.length")
        assert drawn(driver) < ON_A_SCREEN, name
    assert shown["a word of messages"] == benchmark.CELLS // 100
    assert shown["nothing"] == driver.execute_script("return report.table.n") == benchmark.CELLS
    assert all(shown.values())
