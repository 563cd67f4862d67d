"""New processes, whose results come back through files: if a process dies or waits forever, that is only a finding."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing

from conformance.scenarios.model import Broken, NotOffered, Results, first_line


class ProcessDied(RuntimeError):
    """The error if a signal or an exit code ends a new process before ``work`` has returned."""


def results_of(device: str, work: Callable[..., Results], arguments: Sequence[tuple[Any, ...]]) -> list[Results]:
    """Call ``work`` in new processes that know the device, one for each tuple of arguments. Return the results.

    ``work`` is a function of a module. Raises NotOffered if a process raises it, RuntimeError if a process raises
    another error, and ProcessDied if a process dies. Then the other processes are killed.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = [(f"{folder}/{i}", loaded_by(device), work, each) for i, each in enumerate(arguments)]
        processes = [started_anew().Process(target=_live, args=each, daemon=True) for each in given]
        try:
            for process in processes:
                process.start()
            _wait(processes, Path(folder))
        finally:
            for process in filter(lambda p: p.pid is not None, processes):
                process.kill()
                process.join()
        return [_read(Path(folder) / str(i)) for i in range(len(processes))]


def started_anew() -> Any:
    """Return the context of ``torch.multiprocessing`` for processes that inherit nothing from this one.

    They are forked from a server that has imported torch, but no device's module.
    """
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torch.distributed.fsdp"])  # saves seconds in each process
    return context


def loaded_by(device: str) -> str:
    """Return the name of the module that a new process imports to know the device.

    Raises NotOffered if torch has no module for the device.
    """
    if torch.device(device).type == "cpu":
        return "torch"
    try:
        return str(torch.get_device_module(torch.device(device)).__name__)
    except RuntimeError as e:
        raise NotOffered(f"a module of the device: {first_line(e)}") from e


def _wait(processes: Sequence[Any], folder: Path) -> None:
    """Wait until all processes have ended. Raises NotOffered or RuntimeError if one has failed."""
    left = dict(enumerate(processes))
    while left:
        connection.wait([process.sentinel for process in left.values()])
        for i in [i for i, process in left.items() if process.exitcode is not None]:
            code = left.pop(i).exitcode
            if code:
                raise _error(f"process {i}", folder / f"{i}.error", code)


def _error(name: str, said: Path, code: int) -> Exception:
    """Return the error of a process that has ended with a nonzero code."""
    if not said.exists():
        return ProcessDied(f"{name} died: " + (f"signal {-code}" if code < 0 else f"exit code {code}"))
    is_offered, message = json.loads(said.read_text(encoding="utf-8"))
    return RuntimeError(f"{name} raised {message}") if is_offered else NotOffered(message)


def _live(file: str, module: str, work: Callable[..., Results], arguments: tuple[Any, ...]) -> None:
    """Call ``work`` in this new process, and write its results or its error."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    try:
        with suppress(ImportError):  # then ``work`` finds that the device is not known
            importlib.import_module(module)
        _write(Path(file), work(*arguments))
    except (NotOffered, NotImplementedError) as e:
        _end(file, is_offered=False, message=first_line(e))
    except Exception as e:  # noqa: BLE001  # raised by the parent
        _end(file, is_offered=True, message=f"{type(e).__name__}: {first_line(e)}")


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end(file: str, *, is_offered: bool, message: str) -> None:
    Path(f"{file}.error").write_text(json.dumps([is_offered, message]), encoding="utf-8")
    sys.stderr.flush()
    os._exit(1)  # without cleanup: other threads may wait for a process that is killed now


def _write(file: Path, results: Results) -> None:
    lacking = {name: str(result) for name, result in results.items() if isinstance(result, NotOffered)}
    broken = {name: astuple(result) for name, result in results.items() if isinstance(result, Broken)}
    tensors = {name: result.cpu() for name, result in results.items() if isinstance(result, torch.Tensor)}
    torch.save(tensors, file)
    Path(f"{file}.others").write_text(json.dumps([list(results), lacking, broken]), encoding="utf-8")


def _read(file: Path) -> Results:
    names, lacking, broken = json.loads(Path(f"{file}.others").read_text(encoding="utf-8"))
    tensors = torch.load(file, weights_only=True)
    failed = {name: Broken(tuple(lines), at, error and tuple(error)) for name, (lines, at, error) in broken.items()}
    found = {name: NotOffered(why) for name, why in lacking.items()} | failed | tensors
    return {name: found[name] for name in names}
