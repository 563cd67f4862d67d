"""Setup of all tests: Ctrl-C works in child processes, and property tests are deterministic."""

from __future__ import annotations

import contextlib
import inspect
import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a background job of a shell; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples each time, however busy the machine is.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

HANGS = 840  # seconds after which a test in a child counts as hung


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
            _settle()
            pyfuncitem.obj(**given)
        except BaseException:  # noqa: BLE001  # the parent fails with it
            code = 1
            os.write(writing, traceback.format_exc().encode()[-60_000:])
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        if not select.select([pipe], [], [], HANGS)[0]:
            os.kill(child, signal.SIGABRT)  # pytest's faulthandler prints the child's stack
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        pytest.fail(text or f"the test's process ended with {status}", pytrace=False)
    return True


def _settle() -> None:
    """Call ``settle_threads``, as the suite's own children do first, if this process has imported torch."""
    if "torch" in sys.modules:
        from conformance.torch_versions import settle_threads

        settle_threads()


@pytest.fixture
def forked_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pytester fork its runs where a fork makes no difference; see ``tests/forked_runs.py``."""
    from tests import forked_runs

    for name, value in forked_runs.WITHOUT_HYPOTHESIS.items():
        monkeypatch.setenv(name, value)
    started = pytester.popen

    def popen(command: Sequence[str], stdout: Any, stderr: Any, **others: Any) -> Any:
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))}
        if forked_runs.can_be_forked(command, os.environ | environment):
            return forked_runs.start(command, Path.cwd(), stdout, stderr, **environment)
        return started(command, stdout, stderr, **others)

    monkeypatch.setattr(pytester, "popen", popen)


@pytest.fixture(autouse=True)
def _children_can_work() -> Iterator[None]:
    """Fail a test that uses autograd's threads, the device or Inductor here: later children could not use them.

    Torch has one thread here, since a child would wait forever for the OpenMP threads of its parent.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    yield
    if not _blamed and (did := _spoiled()):
        _blamed.append(True)  # the state stays, and later tests did not cause it
        pytest.fail(f"it {did} in the process of the tests; mark it as forked", pytrace=False)


_blamed: list[bool] = []


def _spoiled() -> str:
    """Return the action of this process that its children can no longer repeat; empty if there is none."""
    if any(name.startswith("pt_autograd") for name in _threads()):
        return "ran `backward`"
    npu = sys.modules.get("refnpu.npu")
    if npu is not None and npu.is_initialized():
        return "used the device"
    inductor = sys.modules.get("torch._inductor.codegen.common")
    if inductor is None or "npu" in inductor.device_codegens:
        return ""
    # From torch 2.15 on, Inductor looks up the backend's device each time, and keeps no list.
    listed = getattr(inductor.init_backend_registration, "cache_info", None)
    return "had Inductor list its devices for good" if listed and listed().currsize else ""


def _threads() -> list[str]:
    """Return the names of this process' threads; empty if the system does not list them."""
    names = []
    for file in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # the thread has ended
            names.append(file.read_text(encoding="utf-8"))
    return names
