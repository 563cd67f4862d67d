"""The steps of the triage of a compiled program. Each step yields all evidence so far."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterator
from dataclasses import replace

import torch

from conformance.support.machine import cpu_model, cxx_compiler
from conformance.torch_versions import compiler_tools as tools
from conformance.triage import lanes as lanes_
from conformance.triage import watching
from conformance.triage.compiled import asking, bisecting, dump, reducing, running, stages, worker
from conformance.triage.compiled.model import DYNAMO, OWN, PLAIN, Evidence, Kind, Run, Versions, Wrong
from conformance.triage.compiled.recording import differs
from conformance.triage.compiled.running import Job
from conformance.triage.job import Job as WatchedJob
from conformance.triage.worker import NOT_COMPILED

#: After a run has hung, the limit of later runs is PATIENCE times the longest run that ended, at least LEAST seconds.
PATIENCE, LEAST = 5.0, 60.0


def triage(job: Job) -> Iterator[Evidence]:
    """Yield the evidence after each step, the last time complete."""
    evidence = Evidence(job.program, versions())
    yield evidence
    if job.backend is not None:
        evidence = _watched(job, evidence)
        yield evidence
    if not evidence.eager:
        for found in _compiled(job, evidence):
            evidence = found
            yield found
    yield replace(evidence, complete=True)


def versions() -> Versions:
    """Return the versions, the processor and the compiler that generated code of this process depends on."""
    command = tools.compile_command()
    return Versions(
        torch.__version__, platform.python_version(), cpu_model(), tools.vector_instructions(), cxx_compiler(), command
    )


def _watched(job: Job, e: Evidence) -> Evidence:
    """Compare each op with CPU, without torch.compile."""
    job.tell("without torch.compile, each op compared with CPU")
    lane = {lanes_.OWN: {NOT_COMPILED: "1"}}
    watched = WatchedJob(
        job.backend, job.backend_name, job.program, job.python, lane, (), job.directory, job.timeout, job.tell
    )
    (run,) = watching.watch(watched)
    if run.found is None:
        return replace(e, watched=run.ops).noted(*([f"compared op by op, {run.trouble}"] if run.trouble else []))
    found = run.found
    if found.died == "timeout":  # comparing is slower than the program
        return e.noted(f"without torch.compile, the comparison of each op did not end within {job.timeout:g} s")
    wrong = f"{found.op} (call {found.index}): {found.died or f'{found.check}: {found.message}'}"
    return replace(e, watched=run.ops, eager=wrong)


def _compiled(job: Job, e: Evidence) -> Iterator[Evidence]:
    for backend in (PLAIN, DYNAMO, OWN):
        job.tell(_TOLD.get(backend, backend))
        e = replace(e, runs=(*e.runs, running.run(job, backend)))
        job.tell(f"  {_brief(e.runs[-1])}")
        job = _patient(job, e)
        yield e
        if backend == DYNAMO:
            e = _dynamo(job, e)
            yield e
        if stages.stage(e):
            break
    if stages.stage(e) in (None, stages.Stage.DYNAMO):
        return
    wrong = stages.failing(e, OWN)
    assert wrong is not None
    yield from _located(job, e, wrong)


_TOLD = {PLAIN: "without torch.compile", DYNAMO: "backend 'eager': Dynamo alone", OWN: "as the program compiles"}


def _brief(run: Run) -> str:
    wrong = run.wrong or run.ended
    return (wrong.text() if wrong else f"nothing differs in {run.calls} calls of {run.graphs} graphs") + (
        f" ({run.seconds:g} s)"
    )


def _patient(job: Job, e: Evidence) -> Job:
    """Return the job with a shorter limit if a run has hung while others ended."""
    ended = [r.seconds for r in e.runs if _kind(r) is not Kind.HUNG]
    if not ended or len(ended) == len(e.runs):
        return job
    return dataclasses.replace(job, timeout=min(job.timeout, max(LEAST, PATIENCE * max(ended))))


def _kind(run: Run) -> Kind | None:
    wrong = run.wrong or run.ended
    return wrong.kind if wrong else None


def _dynamo(job: Job, e: Evidence) -> Evidence:
    """Compare the results of compiled functions under Dynamo alone with those without torch.compile."""
    plain, traced = (job.directory / name / worker.RESULTS for name in ("plain", DYNAMO))
    found = differs(plain, traced)
    if not found:
        return e
    running.run(job, PLAIN, place="plain again")
    if differs(plain, job.directory / "plain again" / worker.RESULTS):
        return e.noted("without torch.compile, two runs of the program differ, so Dynamo's results are not judged")
    return replace(e, differs=found)


def _located(job: Job, e: Evidence, wrong: Wrong) -> Iterator[Evidence]:
    """Yield the evidence with the faulty part of the compiler, and with a script if the failing graph fails alone."""
    graph, why = _graph(job, e.runs[-1], wrong)
    if graph is None:
        e = e.noted(why)
        yield e
        yield _blamed(job, e)
        return
    with asking.asker(job, graph) as asker:
        again = asker.wrong(graph)
        if again is None or again.signature != wrong.signature:
            said = again.text() if again else "nothing differs"
            e = e.noted(f"the failing graph alone, with its arguments, in a fresh process: {said}")
            yield e
            yield _blamed(job, e)
            return
        job.tell("the graph goes wrong alone in a fresh process; torch's CompilerBisector:")
        blame, lacking = bisecting.bisect(
            lambda backend, where: _right(asker.run(graph, backend, where), None), job.tell, graph.backend,
            "the failing graph",
        )  # fmt: skip
        e = replace(e, blame=blame).noted(*([lacking] if lacking else []))
        yield e
        yield from reducing.reduced(job, asker, graph, e, wrong)


def _right(run: Run, plain: Run | None) -> bool:
    return stages.fault(run, plain) is None


def _graph(job: Job, run: Run, wrong: Wrong) -> tuple[dump.Dump | None, str]:
    """Return the failing graph, or None and the reason. After a death, the program runs again to store the graph."""
    if wrong.graph < 0:
        return None, "the failure is in no graph of Dynamo"
    place, lost = OWN, run.lost
    if wrong.kind in (Kind.DIED, Kind.HUNG):
        job.tell("once more, to store the graph")
        place = "again"
        lost = running.run(job, OWN, (wrong.graph, wrong.call), place=place).lost
    path = job.directory / place / worker.GRAPH
    if not path.is_file():
        return None, lost or "the failing graph was not stored"
    return dump.load(path), ""


def _blamed(job: Job, e: Evidence) -> Evidence:
    """Return the evidence with the result of torch's bisection, by runs of the whole program."""
    job.tell("torch's CompilerBisector, with the whole program:")
    plain = e.run(PLAIN)
    blame, lacking = bisecting.bisect(
        lambda backend, where: _right(running.run(job, backend, bisection=where, place="bisection"), plain),
        job.tell, stages.own_backend(e), "the program",
    )  # fmt: skip
    return replace(e, blame=blame).noted(*([lacking] if lacking else []))
