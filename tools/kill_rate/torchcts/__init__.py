"""TorchCTS, which pytest collects in this process with TorchCTS's own hooks. An item is one of its tests.

``manifest.py`` beside this file tells TorchCTS what the device supports; ``pytest.ini`` keeps pytest from reading the
configuration of this project.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from conformance.backends import Capabilities
from tools.kill_rate.forked import Check
from tools.kill_rate.torchcts import speed

SEED = 1234
TIMEOUT = 120.0  # seconds for each test, TorchCTS's own limit
# Tests of TorchCTS itself. They are not named to pytest, because TorchCTS overrules pytest's `--ignore`.
LEFT_OUT = "selftest"
Use = Callable[[Mapping[str, Check]], int]


def collect(backend: Capabilities, use: Use) -> int:
    """Call ``use`` with a check for each test while pytest's session lasts. Return what ``use`` returns.

    TorchCTS only collects here, so it neither calls the device, which has to be left to forked children, nor writes
    results after each test. Raises RuntimeError if it collects no test.
    """
    spec = find_spec("torchcts")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    device = backend.device.partition(":")[0]
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(Path(__file__).parent)  # where TorchCTS looks for its manifest
    speed.remember()
    plugin = Session(use)
    with TemporaryDirectory() as evidence:  # the files that TorchCTS writes for failing tests
        code = pytest.main([*_arguments(package, device), "--results-dir", evidence], plugins=[plugin])
    return plugin.result(int(code))


def _arguments(package: Path, device: str) -> list[str]:
    here = Path(__file__).parent
    place = ["-c", str(here / "pytest.ini"), "--rootdir", str(package.parent), "-p", "no:cacheprovider"]
    place += ["--assert", "plain"]
    suites = [str(path) for path in sorted(package.iterdir()) if path.name != LEFT_OUT and [*path.glob("test_*.py")]]
    # Each test has a child process already, in which it may crash.
    isolation = ["--known-segfault-policy", "off", "--adaptive-isolation", "off"]
    return ["--collect-only", *place, *isolation, "--device", device, "--non-interactive", *suites]


class Session:
    """A plugin of pytest that calls ``use`` with the tests where pytest would run them, and keeps their reports."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self._code: int | None = None
        self._error: BaseException | None = None
        self._broken: list[str] = []  # modules that could not be collected
        self._reports: list[pytest.TestReport] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.pluginmanager.unregister(name="terminalreporter")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._broken.append(f"{report.nodeid}: {report.longreprtext.strip().splitlines()[-1]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            if not self._broken:
                self._code = self._use({i.nodeid: Check("torchcts", partial(self._run, i)) for i in session.items})
        except BaseException as e:  # noqa: BLE001  # pytest would report it to a terminal, and go on
            self._error = e
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._reports.append(report)

    def result(self, code: int) -> int:
        """Return what ``use`` returned. ``code``: of pytest."""
        if self._error:
            raise self._error
        if self._code is None:
            why = "; ".join(self._broken) or f"pytest ended with {code}"
            raise RuntimeError(f"TorchCTS was not collected: {why}")
        return self._code

    def _run(self, item: pytest.Item) -> None:
        """Run a test with its fixtures, from the same random state with and without a fault."""
        self._reports.clear()
        torch.manual_seed(SEED)
        random.seed(SEED)
        np.random.seed(SEED)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        for report in self._reports:
            assert not report.failed, f"{report.when}: {_message(report)}"


def _message(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longreprtext)
