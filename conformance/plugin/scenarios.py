"""Scenarios as pytest items. They are collected only if they are named, and are not part of a lane's results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

SCENARIO_TIMEOUT = 300.0  # seconds


class ScenarioFile(pytest.File):
    """The file of one scenario. Other files of the package have none."""

    def collect(self) -> Iterator[ScenarioItem]:
        from conformance.scenarios import runner

        if self.path.suffix == ".py" and self.path.stem in runner.names():
            yield ScenarioItem.from_parent(self, name=self.path.stem)


class ScenarioItem(pytest.Item):
    """One scenario, compared with CPU. It is not a cell, and not part of a lane's results."""

    def runtest(self) -> None:
        from conformance import backends
        from conformance.scenarios import runner

        needs = runner.lacking(self.name)
        if needs:
            pytest.skip(f"{needs} is not installed")
        try:
            backend = backends.find(self.config.option.backend or backends.default())
        except backends.BackendNotFound as e:
            raise pytest.UsageError(str(e)) from e
        result = runner.run(self.name, backend, SCENARIO_TIMEOUT)
        if result.failure:
            pytest.fail(result.text(), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
