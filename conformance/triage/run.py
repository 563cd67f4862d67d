"""Triage from end to end: watch the program in every lane, question the culprit, shrink it, write a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.calls import file, judging
from conformance.calls.model import Call
from conformance.inventory import exists
from conformance.triage import lanes as lanes_
from conformance.triage import script as script_
from conformance.triage import worker
from conformance.triage.evidence import CopyProbe, Evidence, Found, Kernel, LaneRun
from conformance.triage.shrink import shrink

AT_ONCE = 2  # runs side by side
MOST_ASKED = 4  # lanes in which the culprit is tried by itself, if they agree
MOST_TRIES = 120  # of the shrinker
MOST_SCRIPTS = 4  # of calls found by it, the smallest first
RUNS = 2  # of a script, all of which have to go wrong
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What is to be looked into, and with what means."""

    backend: Capabilities
    backend_name: str  # as --backend gives it
    program: tuple[str, ...]  # a script, or -m and a module, and its arguments
    python: str
    lanes: Mapping[str, Mapping[str, str]]
    pythons: tuple[str, ...]  # interpreters of other environments, for the script
    directory: Path  # for what the runs leave
    timeout: float  # seconds a run may take
    tell: Tell


def triage(job: Job) -> tuple[Evidence, str]:
    """Evidence and the script that shows the defect ("" where nothing was found)."""
    runs = watch(job)
    evidence = Evidence(runs, torch=torch.__version__, single_thread=_named(runs, lanes_.SINGLE))
    if evidence.first is None:
        return evidence, ""
    lane, found = evidence.first
    job.tell(f"first: {found.op}, call {found.index}, in lane {lane!r}")
    path = _call_file(job, lane, found)
    if path is None:
        note = "the arguments of the op cannot be kept, so that it could not be tried by itself"
        return replace(evidence, notes=(note,)), ""
    evidence = question(job, evidence, lane, path)
    where = shown_in(evidence, lane)
    calls, notes = smaller(job, evidence, where, path)
    return finish(job, replace(evidence, notes=notes), calls, where)


# Running ----------------------------------------------------------------------------------------------------------


def watch(job: Job) -> tuple[LaneRun, ...]:
    """The program in every lane, some side by side."""
    waiting = list(job.lanes)
    running: dict[str, tuple[subprocess.Popen[bytes], float]] = {}
    done: dict[str, LaneRun] = {}
    told = 0.0
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            lane = waiting.pop(0)
            running[lane] = (_start(job, lane, -1), time.monotonic())
        time.sleep(0.05)
        for lane, (process, started) in list(running.items()):
            late = time.monotonic() - started > job.timeout
            if late:
                process.kill()
            if process.poll() is not None or late:
                process.wait()
                done[lane] = _read(_place(job, lane), lane, process.returncode, late)
                del running[lane]
                job.tell(f"[{len(done)}/{len(job.lanes)}] {lane}: {_brief(done[lane])}")
        if time.monotonic() - told > 5:
            told = time.monotonic()
            for lane in running:
                index, op = worker.read_page(_place(job, lane))
                job.tell(f"  {lane}: call {index} {op}" if op else f"  {lane}: starting")
    return tuple(done[lane] for lane in job.lanes)


def _brief(run: LaneRun) -> str:
    if run.found is None:
        return run.trouble or f"nothing wrong in {run.ops} ops"
    return f"{run.found.op} (call {run.found.index}): {run.found.check or run.found.died}"


def _place(job: Job, lane: str) -> Path:
    place = job.directory / lane.replace(" ", "_")
    place.mkdir(parents=True, exist_ok=True)
    return place


def _start(job: Job, lane: str, keep: int) -> subprocess.Popen[bytes]:
    place = _place(job, lane)
    (place / worker.FOUND).unlink(missing_ok=True)
    arguments = [job.backend_name, str(place), str(keep), "--", *job.program]
    command = [job.python, "-m", worker.__name__, *arguments]
    environment = dict(os.environ) | dict(job.lanes[lane])
    with (place / "output").open("wb") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)


def _read(place: Path, lane: str, status: int, late: bool) -> LaneRun:
    """What a finished run left. A death is charged to the op that was running."""
    if (place / worker.FOUND).is_file():
        left: dict[str, Any] = json.loads((place / worker.FOUND).read_text(encoding="utf-8"))
        found = Found(**left["found"]) if "found" in left else None
        return LaneRun(lane, found, left["ops"], left["unjudged"], left.get("trouble", ""))
    index, op = worker.read_page(place)
    said = (place / "output").read_text(encoding="utf-8", errors="replace").strip()
    if index < 0 or status > 0:
        return LaneRun(lane, None, 0, trouble=f"the run broke: {said.splitlines()[-1] if said else status}")
    died = "timeout" if late else signal.Signals(-status).name
    return LaneRun(lane, Found(index, op, "", said[:2000], _line_in(said), died=died), index + 1)


def _line_in(said: str) -> str:
    """The program's line in a stack that faulthandler printed: the innermost that is not torch's or ours."""
    frames = [t.strip() for t in said.splitlines() if t.strip().startswith("File ")]
    return next((f for f in frames if "/torch/" not in f and "/conformance/" not in f), "")


def _call_file(job: Job, lane: str, found: Found) -> Path | None:
    path = _place(job, lane) / worker.CALL
    if found.died:  # it runs again, to write the arguments down before the op
        path.unlink(missing_ok=True)
        process = _start(job, lane, found.index)
        try:
            process.wait(job.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return path if path.is_file() else None


def _named(runs: Sequence[LaneRun], lane: str) -> LaneRun | None:
    return next((r for r in runs if r.lane == lane), None)


# Questions --------------------------------------------------------------------------------------------------------


class Prober:
    """A process in one lane that answers questions."""

    def __init__(self, job: Job, lane: str) -> None:
        from conformance.triage import prober

        command = [job.python, "-m", prober.__name__, job.backend_name]
        environment = dict(os.environ) | dict(job.lanes[lane])
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, question: str, *arguments: Any) -> dict[str, Any]:
        """The answer; ``{"broken": ...}`` where the prober itself is gone."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(json.dumps([question, *arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"broken": "the process is gone"}
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"broken": "the process is gone"}
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def prober(job: Job, lane: str) -> Iterator[Prober]:
    """A prober for the time of a ``with`` block."""
    opened = Prober(job, lane)
    try:
        yield opened
    finally:
        opened.close()


def question(job: Job, e: Evidence, lane: str, path: Path) -> Evidence:
    """Try the op, its copies and the allocator by themselves: in the culprit's lane first, then in the others."""
    wanted = asked_lanes(e, lane)
    with ThreadPoolExecutor(AT_ONCE) as pool:  # each waits for a process of its own
        answers = list(pool.map(lambda asked: _ask(job, asked, path, asked == lane), wanted))
    kernels = next((a.kernels for a in answers if a.kernels), ())
    return replace(
        e,
        alone=tuple((n, a.wrong) for n, a in zip(wanted, answers, strict=True)),
        allocator=tuple((n, a.blocks) for n, a in zip(wanted, answers, strict=True)),
        threads=tuple((n, a.threaded) for n, a in zip(wanted, answers, strict=True)),
        kernels=kernels,
        copy=answers[0].copy,
    )


def asked_lanes(e: Evidence, lane: str) -> list[str]:
    """The culprit's lane, those that saw something else, which may say why, and some of those that agree."""
    others = [r.lane for r in e.runs if r.lane not in (lane, lanes_.SINGLE, lanes_.OWN)]
    differing = [n for n in others if n not in e.finding_lanes]
    agreeing = sorted((n for n in others if n in e.finding_lanes), key=lambda n: not _died_in(e, n))
    return [lane, *differing, *agreeing][: max(MOST_ASKED, 1 + len(differing))]


def shown_in(e: Evidence, lane: str) -> str:
    """Where a script can show the defect: in the culprit's lane, or else the first in which the op alone goes wrong.

    An op that reads what is not its own may find there what it should, now and then; a guarded lane stops it each time.
    """
    alone = dict(e.alone)
    wrong = [n for n in alone if alone[n]]
    return lane if alone.get(lane) or not wrong else wrong[0]


def _died_in(e: Evidence, lane: str) -> bool:
    run = _named(e.runs, lane)
    return run is not None and run.found is not None and bool(run.found.died)


@dataclass(frozen=True)
class _Answers:
    """What one lane's prober said."""

    wrong: bool
    blocks: str
    threaded: str
    kernels: tuple[Kernel, ...] = ()
    copy: CopyProbe | None = None


def _ask(job: Job, lane: str, path: Path, thoroughly: bool) -> _Answers:
    with prober(job, lane) as p:
        wrong = _wrong(p.ask("judge", str(path)))
        problem, threaded = _problem(p.ask("blocks", 1)), _problem(p.ask("blocks", 4))
        answers = _Answers(wrong, problem, threaded)
        if thoroughly:
            answers = replace(answers, kernels=_kernels(job, p, path), copy=_copy(p, path))
    job.tell(f"alone in {lane}: {'wrong again' if wrong else 'right'}; blocks: {problem or threaded or 'sound'}")
    return answers


def _wrong(answer: Mapping[str, Any]) -> bool:
    return bool(answer.get("check") or answer.get("died"))


def _problem(answer: Mapping[str, Any]) -> str:
    died = answer.get("died")
    return (
        f"died of {died}" if died else str(answer.get("problem") or answer.get("raised") or answer.get("broken") or "")
    )


def _kernels(job: Job, p: Prober, path: Path) -> tuple[Kernel, ...]:
    answer = p.ask("kernels", str(path), False)
    if "kernels" not in answer:
        answer = p.ask("kernels", str(path), True)
    return tuple(Kernel(name, inside, _route(name, job.backend.device)) for name, inside in answer.get("kernels", ()))


def _route(operator: str, device: str) -> str:
    """The route of an operator, of which the dispatcher's profile does not tell the overload."""
    packet = getattr(torch.ops.aten, operator, None)
    names = [operator if o == "default" else f"{operator}.{o}" for o in packet.overloads()] if packet else []
    names = [n for n in names if exists(n)]
    routes = [str(judging.route(n, device)) for n in names]
    return next((r for r in ("native", "composite", "fallback") if r in routes), "")


def _copy(p: Prober, path: Path) -> CopyProbe | None:
    lie, dense = p.ask("copy", str(path), False), p.ask("copy", str(path), True)
    if "raised" in lie:
        return None
    return CopyProbe(_copied(lie), _copied(dense), lie.get("wrong", ""))


def _copied(answer: Mapping[str, Any]) -> str:
    return str(answer.get("died") or ("wrong" if answer.get("wrong") or answer.get("raised") else "right"))


# The script -------------------------------------------------------------------------------------------------------


def smaller(job: Job, e: Evidence, lane: str, path: Path) -> tuple[list[Call], tuple[str, ...]]:
    """The call, then each smaller one that still goes wrong by itself; and what there is to say of that."""
    (call,) = file.load(path)
    if not dict(e.alone).get(lane):
        return [call], ("the op by itself is right: what the program did before it matters",)
    candidate = path.with_name("candidate.safetensors")
    with prober(job, lane) as p:

        def fails(smaller_: Call) -> bool:
            file.save(candidate, [smaller_])
            return _wrong(p.ask("judge", str(candidate)))

        calls = shrink(call, fails, MOST_TRIES)
    job.tell(_size(call, calls[-1]))
    return calls, ()


def finish(job: Job, e: Evidence, calls: list[Call], lane: str) -> tuple[Evidence, str]:
    """The script of the smallest call that goes wrong each time it is run; tried with other interpreters too.

    A call that reads past its arguments goes wrong by what happens to lie there: less so the more is left of it.
    """
    if not dict(e.alone).get(lane):
        return e, ""
    settings = " ".join(f"{k}={v}" for k, v in job.lanes[lane].items())
    title = f"{calls[0].overload} on {job.backend.device} and on CPU" + (f"; run with {settings}" if settings else "")
    written = job.directory / "script.py"
    notes: tuple[str, ...] = ()
    texts: list[tuple[Call, str]] = []
    for call in [*reversed(calls[-MOST_SCRIPTS:]), calls[0]]:
        try:
            texts.append((call, script_.script(call, job.backend, title)))
        except ValueError as error:
            notes = (f"no short script: {error}",)
            continue
        written.write_text(texts[-1][1], encoding="utf-8")
        if all(_fails(job, job.python, written, lane) for _ in range(RUNS)):
            notes = (_size(calls[0], call), f"the script ({_own(texts[-1][1])} of its own) goes wrong when run")
            others = tuple((_torch_of(p), _fails(job, p, written, lane)) for p in job.pythons)
            return replace(e, notes=(*e.notes, *notes), versions=others), texts[-1][1]
    if not texts:
        return replace(e, notes=(*e.notes, *notes)), ""
    call, text = texts[0]
    written.write_text(text, encoding="utf-8")
    notes = (_size(calls[0], call), f"the script ({_own(text)} of its own) does not go wrong each time it is run")
    return replace(e, notes=(*e.notes, *notes)), text


def _size(call: Call, small: Call) -> str:
    return f"shrunk from {call.elements} bytes of arguments to {small.elements}"


def _own(text: str) -> str:
    return f"{script_.own_lines(text)} lines"


def _fails(job: Job, python: str, path: Path, lane: str) -> bool:
    environment = dict(os.environ) | dict(job.lanes[lane])
    return subprocess.run([python, str(path)], env=environment, capture_output=True, check=False).returncode != 0


def _torch_of(python: str) -> str:
    command = [python, "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or python


def interpreter(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """(interpreter, program) of a command such as ``python script.py`` or ``script.py``. Raises ValueError."""
    first, *rest = command or ("",)
    if first.endswith(".py"):
        return sys.executable, tuple(command)
    if Path(first).name.startswith("python") and rest and (rest[0] == "-m" or not rest[0].startswith("-")):
        return (sys.executable if first in ("python", "python3") else first), tuple(rest)
    raise ValueError(f"expected a command like: python script.py ARGUMENTS, got: {' '.join(command) or 'nothing'}")
