"""The reduction of a failing graph to a short script, with the kernels that Inductor generates for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from conformance.triage.compiled import running, smaller
from conformance.triage.compiled.asking import Asker, until
from conformance.triage.compiled.dump import Dump
from conformance.triage.compiled.model import OWN, Evidence, Script, Wrong
from conformance.triage.compiled.running import Job
from conformance.triage.compiled.script import script

SECONDS = 240.0  # time budget of the minifier, and again of the shrinking
RUNS = 2  # runs of the script, which all must fail
#: A kernel in generated code: Inductor assigns the kernel's source as a string to a name that ends with a number.
_KERNEL = re.compile(r"^(\w+_\d+) = [\w.]+\(.*r?(?:\'\'\'|\"\"\")", re.MULTILINE)


def reduced(job: Job, asker: Asker, graph: Dump, e: Evidence, wrong: Wrong) -> Iterator[Evidence]:
    """Yield the evidence with a script of the graph, then with scripts of smaller graphs."""
    stage = e.blame.backend if e.blame and e.blame.backend != "inductor" else OWN
    if graph.backend not in _NAMED and not _registered(graph.backend):
        yield e.noted(f"no script: the program's backend {graph.backend!r} has no name that a script can use")
        return
    yield _written(job, asker, graph, graph, e, wrong, stage)
    for small in _smaller(job, asker, graph, wrong, stage):
        yield _written(job, asker, graph, small, e, wrong, stage)


_NAMED = ("inductor", "aot_eager", "aot_eager_decomp_partition", "eager")


def _registered(name: str) -> bool:
    import torch

    return name in torch.compiler.list_backends(exclude_tags=())


def _smaller(job: Job, asker: Asker, graph: Dump, wrong: Wrong, stage: str) -> Iterator[Dump]:
    for name, make in (("torch's minifier", lambda g, f: smaller.minified(g, f)[0]), ("shrinking", smaller.shrunk)):
        over = until(SECONDS)

        def fails(candidate: Dump) -> bool:
            if over():  # noqa: B023 - called in this round alone
                return False
            try:
                found = asker.wrong(candidate, stage)
            except ValueError:  # cannot be stored
                return False
            return found is not None and found.signature == wrong.signature

        job.tell(f"{name}, for at most {SECONDS:g} s")
        graph = make(graph, fails)
        job.tell(f"  {graph.nodes} calls, {graph.elements} elements of arguments")
        yield graph


def _written(job: Job, asker: Asker, whole: Dump, small: Dump, e: Evidence, wrong: Wrong, stage: str) -> Evidence:
    """Return the evidence with the script of a graph, after it ran in fresh processes."""
    found = asker.wrong(small, stage) or wrong
    backend = small.backend if stage == OWN else stage
    given = small if stage == OWN else replace(small, options={})
    module = job.backend.module if job.backend else "torch"
    title = f"{found.text()}; torch.compile(backend={backend!r}), torch {e.versions.torch}"
    try:
        text = script(given, backend, title, found.subject, module, job.directory.parent)
    except ValueError as error:
        return e.noted(f"no script: {error}")
    path = job.directory.parent / "script.py"
    path.write_text(text, encoding="utf-8")
    fails = sum(_fails(job) for _ in range(RUNS))
    sizes = (whole.nodes, small.nodes), (whole.elements, small.elements)
    return replace(e, script=Script(text, *sizes, (fails, RUNS), *_generated(job, asker, small, found, stage)))


def _fails(job: Job) -> bool:
    path = job.directory.parent / "script.py"
    output = job.directory / "script.output"
    return running.in_own_group([job.python, str(path)], job.environment(), output, job.timeout) != 0


def _generated(job: Job, asker: Asker, small: Dump, wrong: Wrong, stage: str) -> tuple[tuple[str, ...], str]:
    """Return the kernels that are generated for the graph, and how it ends on CPU."""
    code = asker.generated(small) if stage == OWN else ""
    kernels = tuple(dict.fromkeys(_KERNEL.findall(code)))
    if code:
        (job.directory.parent / "generated.py").write_text(code, encoding="utf-8")
    if not job.backend or job.backend.kind == "cpu" or all(getattr(a, "is_cpu", True) for a in small.args):
        return kernels, ""
    on_cpu = asker.wrong(small, stage, device="cpu")
    if on_cpu is None:
        return kernels, "right"
    return kernels, "as wrong" if on_cpu.signature == wrong.signature else on_cpu.text()
