"""The compilation of one model, and its calls, each in a process of its own that may die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from conformance.aoti import ends
from conformance.aoti.grid import grid
from conformance.aoti.model import SWITCH, Api, Call, Ended, Input, Observed, Report, input_from
from conformance.aoti.progress import read
from conformance.backends import Capabilities
from conformance.support.lines import last_line
from conformance.support.signals import signal_name
from conformance.triage.warm import Warm

_CALLING = "conformance.aoti.calling"
_LOADED = (_CALLING, "torch.export", "conformance.aoti.preload")
_PRINTED = 1 << 16  # bytes of a process's output that are read, from its end


class CompileError(Exception):
    """A model could not be compiled, for the reason ``why``. ``log``: the file with the compiler's output."""

    def __init__(self, why: str, log: Path | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.log = log

    def __str__(self) -> str:
        return f"{self.why}; the output is in {self.log}" if self.log else self.why


class _Process(Protocol):
    """The methods of ``subprocess.Popen`` that are used."""

    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Job:
    """A model to try, by its specification, on a backend. ``other``: a backend on whose device inputs are also put."""

    model: str
    backend: Capabilities
    directory: Path
    other: Capabilities | None = None
    switches: tuple[bool, ...] = (False, True)
    apis: tuple[Api, ...] = (Api.CURRENT,)
    timeout: float = 60.0
    compile_timeout: float = 1800.0
    tell: Callable[[str], None] = lambda _: None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that an input can be on besides the model's."""
        return ("meta", "cpu", *([self.other.device] if self.other else ()))

    def loads(self, api: Api) -> tuple[str, ...]:
        """Return the devices to load a model for, other than the device that it was compiled for.

        A package stores the type of its device, so the current API takes only another index.
        """
        if api is Api.CURRENT:
            return (f"{self.backend.kind}:1",)
        return tuple(d for d in ("cpu", "cuda", "meta") if d != self.backend.kind)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A package, or a shared library of the deprecated API, with the inputs that it was compiled for."""

    path: str
    api: Api
    inputs: tuple[Input, ...]
    torch: str


def compile_model(job: Job, api: Api, environment: Mapping[str, str] | None = None) -> Compiled:
    """Compile the job's model in a process of its own. Raises CompileError."""
    job.directory.mkdir(parents=True, exist_ok=True)
    facts, log = (job.directory / f"compile-{api}.{kind}" for kind in ("json", "log"))
    package = job.directory / "model.pt2"
    facts.unlink(missing_ok=True)
    command = [sys.executable, "-m", "conformance.aoti.compiling", job.backend.asked, job.model, str(api)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, str(package), str(facts)], stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        died = end_of(process, job.compile_timeout)
    found = read(facts)
    if mistake := found.get("mistake"):
        raise CompileError(mistake)
    if found["phase"] != "done":
        why = found.get("error") or f"the process ended in the phase {found['phase']!r}: {died}"
        raise CompileError(f"{job.model} cannot be compiled: {why}", log)
    return Compiled(found["package"], api, tuple(input_from(i) for i in found["inputs"]), found["torch"])


def run(job: Job) -> Report:
    """Compile the model and make every call of its grid. Raises CompileError if the current API cannot compile it."""
    every: list[Ended] = []
    notes: list[str] = []
    compiled = failed = None
    for api in job.apis:
        job.tell(f"{job.model}: compiles by the {api} API")
        try:
            built = compile_model(job, api)
        except CompileError as e:
            if api is Api.CURRENT:
                raise
            notes.append(f"the {api} API: {e.why}")
            failed = e
            continue
        compiled = compiled or built
        every += calls(job, built, grid(built.inputs, job.devices, job.loads(api)))
    if compiled is None:
        raise failed or CompileError(f"{job.model}: no API to compile it by")
    notes += [
        f"all example values of {i.name} are equal, so a wrong stride of it cannot show"
        for i in compiled.inputs
        if i.uniform
    ]
    return Report(
        job.model, compiled.torch, job.backend.kind, compiled.inputs, tuple(every),
        ends.findings(every, job.apis[0]), ends.differing(every), tuple(notes),
    )  # fmt: skip


def calls(job: Job, compiled: Compiled, wanted: Sequence[Call]) -> Iterator[Ended]:
    """Make each call with each of the job's settings of the switch, and yield how it ends."""
    job.tell(f"{job.model}: {len(wanted)} calls, {len(job.switches)} time(s) each")
    with _starter(job) as start:
        for call in wanted:
            for checked in job.switches:
                yield ends.ended(call, checked, compiled.api, observe(job, compiled, call, checked, start))


Start = Callable[[Sequence[str], Mapping[str, str], Path], _Process]


@contextmanager
def _starter(job: Job) -> Iterator[Start]:
    """Yield a function that starts the process of a call. On Linux it forks if the backend's isolation is "fork"."""
    if job.backend.isolation != "fork" or sys.platform != "linux":
        yield _spawned
        return
    with Warm(sys.executable, _LOADED) as warm:

        def forked(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> _Process:
            with log.open("wb") as output:
                return warm.run(_CALLING, arguments, environment, output)

        yield forked


def _spawned(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> _Process:
    with log.open("wb") as output:
        command = [sys.executable, "-m", _CALLING, *arguments]
        return subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=dict(environment))


def environment_of(checked: bool) -> dict[str, str]:
    """Return this process's environment with the switch set or unset."""
    environment = {k: v for k, v in os.environ.items() if k != SWITCH}
    return environment | ({SWITCH: "1"} if checked else {})


def observe(job: Job, compiled: Compiled, call: Call, checked: bool, start: Start = _spawned) -> Observed:
    """Make a call in a process of its own. Return the observation."""
    request, result, log = (job.directory / name for name in ("call.json", "result.json", "call.log"))
    request.write_text(json.dumps(asdict(call)), encoding="utf-8")
    result.unlink(missing_ok=True)
    other = job.other.asked if job.other else ""
    arguments = [job.backend.asked, other, job.model, str(compiled.api), compiled.path, str(request), str(result)]
    died = end_of(start(arguments, environment_of(checked), log), job.timeout)
    found = read(result)
    keys = ("phase", "eager_raised", "raised", "difference")
    seen = Observed(**{key: found[key] for key in keys if key in found}, died=died, printed=tail(log))
    if died.startswith("exit code") and seen.phase == "prepare":
        return replace(seen, died="", raised=last_line(seen.printed))
    return seen


def tail(file: Path) -> str:
    """Return the end of a process's output."""
    with file.open("rb") as text:
        text.seek(max(0, file.stat().st_size - _PRINTED))
        return text.read().decode("utf-8", "replace")


def end_of(process: _Process, timeout: float) -> str:
    """Wait, and return how the process died: "timeout", a signal's name, an exit code; "" if it ended well.

    The process is killed at the timeout, and if this process is interrupted.
    """
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        process.kill()
        process.wait()
    return signal_name(code) if code else ""
