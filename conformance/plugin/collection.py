"""Cells as pytest items, and the collection of 250,000 of them in seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.plugin import keywords, markers, sharding
from conformance.plugin.request import PACKAGE, asked_for, is_of_all, plan_of
from conformance.plugin.resuming import seen
from conformance.vocabulary import SCENARIOS, CellId

COLLECT_S = pytest.StashKey[float]()  # seconds of collection
SELECTED = pytest.StashKey[bool]()  # set once -k, -m and the other selecting options were applied without an error


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    """Collect the cells of an op family from its file in ops/, and scenarios from their file in scenarios/."""
    kinds: dict[Path, type[pytest.File]] = {PACKAGE / "ops": OpsFile, PACKAGE / SCENARIOS: ScenarioFile}
    of = kinds.get(file_path.parent)
    if of is None or file_path.suffix != ".py" or file_path.stem.startswith("_"):
        return None
    node: pytest.File = of.from_parent(parent, path=file_path, nodeid=f"{file_path.parent.name}/{file_path.name}")
    return node


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Measure the time of collection. The garbage collector is off, since it would scan all items repeatedly."""
    if not asked_for(session.config):
        return (yield)
    plan_of(session.config)  # not part of the measured time
    started = time.perf_counter()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        session.config.stash[COLLECT_S] = time.perf_counter() - started


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Deselect cells by options and shard, after the hooks of other plugins. Raises pytest.UsageError.

    Cells have no fixtures, so pytest does not need to reorder them, which takes two seconds in a full run. If all items
    are cells, -k and --deselect are not given, and no other plugin has this hook, the cells skip pytest's own hooks.
    """
    if not asked_for(config):
        return (yield)
    chosen, others = config.option.keyword or config.option.deselect, _others_with_hook(config)
    if chosen or others or not all(isinstance(item, CellItem) for item in items):
        given = _cells_of(items) if others else set()
        with markers.decided_here(config, items, CellItem):
            yield
        _refuse_fewer(config, given, items, others)
    else:
        cells, items[:] = items[:], []
        try:
            yield
        finally:
            items[:] = cells
    _leave_out(config, items, lambda cells: sharding.taken(config, cells))
    _leave_out(config, items, lambda cells: _to_run(config, cells))
    config.stash[SELECTED] = True


def _others_with_hook(config: pytest.Config) -> list[str]:
    """Return the names of the plugins that change the collected items, besides pytest's own and the suite's."""
    hooks = config.hook.pytest_collection_modifyitems.get_hookimpls()
    packages = {hook.plugin_name: hook.function.__module__.partition(".")[0] for hook in hooks}
    return sorted(name for name, package in packages.items() if package not in ("_pytest", PACKAGE.name))


def _refuse_fewer(config: pytest.Config, given: set[CellId], items: list[pytest.Item], others: list[str]) -> None:
    """Raise pytest.UsageError if other plugins deselected cells of a run that counts as a run of all cells."""
    lost = given - _cells_of(items)
    if lost and is_of_all(config, plan_of(config)):
        raise pytest.UsageError(
            f"a plugin (one of {', '.join(others)}) deselected {len(lost)} of {len(given)} cells, and the run would "
            "count as one of all cells; select cells by -k, -m, --shard or another option, or run without that plugin "
            "(-p no:NAME)"
        )


def _cells_of(items: list[pytest.Item]) -> set[CellId]:
    return {item.cell for item in items if isinstance(item, CellItem)}


def _leave_out(
    config: pytest.Config, items: list[pytest.Item], choose: Callable[[list[CellId]], set[CellId] | None]
) -> None:
    """Deselect the cells that ``choose`` does not return. If it returns None, all cells stay."""
    chosen = choose([item.cell for item in items if isinstance(item, CellItem)])
    if chosen is not None:
        out = [item for item in items if isinstance(item, CellItem) and item.cell not in chosen]
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if not (isinstance(item, CellItem) and item.cell not in chosen)]


def _to_run(config: pytest.Config, cells: list[CellId]) -> set[CellId] | None:
    """Return the cells that the interrupted run has not observed, None if no run is resumed."""
    known = seen(config)
    return {cell for cell in cells if str(cell) not in known} if known else None


class OpsFile(pytest.File):
    """The file of one op family."""

    def collect(self) -> Iterator[CellItem]:
        plan = plan_of(self.config)
        for cell in markers.selected(self.config, plan, keywords.cells_of(self, plan)):
            yield CellItem.from_parent(self, name=cell.name, cell=cell)


class ScenarioFile(pytest.File):
    """A file of the package ``scenarios``, which may have no scenario."""

    def collect(self) -> Iterator[CellItem]:
        plan = plan_of(self.config)
        for cell in markers.selected(self.config, plan, plan.scenarios(self.path.stem)):
            yield CellItem.from_parent(self, name=cell.name, cell=cell)


class CellItem(pytest.Item):
    """The pytest item of one cell."""

    def __init__(self, *, cell: CellId, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.run: Callable[[], None] | None = None  # the call phase, if pytest runs the item in its three phases

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name

    def runtest(self) -> None:
        """Run the cell in pytest's call phase. Only used if a report plugin needs the three phases."""
        assert self.run is not None
        self.run()
