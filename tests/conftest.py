"""Setup of all tests: Ctrl-C works in child processes, and property tests are deterministic."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; children would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however busy the machine is.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "forked: runs in a child, since it starts threads of torch or changes the process"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is marked as forked in a child. Threads that it starts would be missing in others' children."""
    if pyfuncitem.get_closest_marker("forked") is None:
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            pyfuncitem.obj(**given)
        except BaseException:  # noqa: BLE001  # the parent fails with it
            code = 1
            os.write(writing, traceback.format_exc().encode()[-60_000:])
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        pytest.fail(text or f"the test's process ended with {status}", pytrace=False)
    return True


@pytest.fixture(autouse=True)
def _without_threads_of_autograd() -> Iterator[None]:
    """Fail after a test that starts autograd's threads here: children of this process cannot run ``backward`` then."""
    yield
    if not _blamed and any(name.startswith("pt_autograd") for name in _threads()):
        _blamed.append(True)  # they stay, and the next tests did not start them
        pytest.fail("it ran `backward` in the process of the tests; mark it as forked", pytrace=False)


_blamed: list[bool] = []


def _threads() -> list[str]:
    """Return the names of this process' threads, as far as the system tells them."""
    names = []
    for file in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # the thread has ended
            names.append(file.read_text(encoding="utf-8"))
    return names
