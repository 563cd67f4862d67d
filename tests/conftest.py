"""Setup of all tests: Ctrl-C works in child processes, and property tests are deterministic."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import traceback

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
