"""The stage of the compiler in which a program first goes wrong, from the evidence. Pure."""

from __future__ import annotations

from enum import Enum

from conformance.triage.compiled.model import DYNAMO, OWN, PLAIN, Evidence, Kind, Run, Wrong


class Stage(str, Enum):
    """A stage, in the order of ``torch.compile``."""

    EAGER = "eager"
    DYNAMO = "dynamo"
    AOT = "aot"
    DECOMPOSITION = "decomposition"
    FAKE = "fake tensors"
    LOWERING = "inductor lowering"
    PASSES = "inductor passes"
    KERNEL = "generated kernel"
    INDUCTOR = "inductor"
    BACKEND = "backend"


MEANING = {
    Stage.EAGER: "the program is wrong without torch.compile",
    Stage.DYNAMO: "Dynamo traces the program to a graph that does something else, or cannot trace it",
    Stage.AOT: "AOTAutograd's graph goes wrong, run op by op",
    Stage.DECOMPOSITION: "a decomposition or the partition of AOTAutograd's graph goes wrong, run op by op",
    Stage.FAKE: "an op's result is not as its fake implementation says",
    Stage.PASSES: "a pass or a setting of Inductor changes the graph",
    Stage.LOWERING: "Inductor's lowering of an op, or the kernel that is generated from it",
    Stage.KERNEL: "the kernel that is generated from the lowered op: the same graph is right on CPU, "
    "or the C++ compiler refuses the kernel",
    Stage.INDUCTOR: "Inductor; no part of it that can be switched off is to blame",
    Stage.BACKEND: "the backend that the program gives to torch.compile, which is not Inductor",
}
_BY_BACKEND = {
    DYNAMO: Stage.DYNAMO,
    "aot_eager": Stage.AOT,
    "aot_eager_decomp_partition": Stage.DECOMPOSITION,
    "aot_eager_decomp_partition_crossref": Stage.FAKE,
}


def stage(e: Evidence) -> Stage | None:
    """Return the stage, None if nothing goes wrong."""
    if e.eager:
        return Stage.EAGER
    if e.differs or failing(e, DYNAMO):
        return Stage.DYNAMO
    wrong = failing(e, OWN)
    if wrong is None:
        return None
    if e.blame and e.blame.backend in _BY_BACKEND:
        return _BY_BACKEND[e.blame.backend]
    return _inductor(e, wrong) if own_backend(e) == "inductor" else Stage.BACKEND


def _inductor(e: Evidence, wrong: Wrong) -> Stage:
    if wrong.compiler or (e.script and e.script.on_cpu == "right"):
        return Stage.KERNEL
    if e.blame and e.blame.subsystem:
        return Stage.LOWERING if e.blame.subsystem == "lowerings" else Stage.PASSES
    return Stage.INDUCTOR


def itself(e: Evidence) -> Wrong | None:
    """Return how the program itself fails, without torch.compile; None if it ends well."""
    plain = e.run(PLAIN)
    return plain.ended if plain else None


def sound(e: Evidence) -> bool:
    """Return whether calls of graphs were compared, nothing differed, and the program ended well."""
    own = e.run(OWN)
    return stage(e) is None and itself(e) is None and own is not None and own.calls > 0


def failing(e: Evidence, backend: str) -> Wrong | None:
    """Return the failure with a backend that does not occur without torch.compile, None if there is none."""
    run = e.run(backend)
    return fault(run, e.run(PLAIN)) if run else None


def fault(run: Run, plain: Run | None) -> Wrong | None:
    """Return the failure of a run in a graph, or its end if that differs from the end of ``plain``; else None."""
    if run.wrong:
        return run.wrong
    usual = plain.ended if plain else None
    if run.ended is None or run.ended.signature == (usual.signature if usual else None):
        return None if run.ended or usual is None else _missing(usual)
    return run.ended


def _missing(usual: Wrong) -> Wrong:
    return Wrong(Kind.EXITED, f"no error; without torch.compile: {usual.text()}")


def own_backend(e: Evidence) -> str:
    """Return the backend that the program gives to torch.compile; several are joined, "" if it compiles nothing.

    If the run with this backend died and left no names, they come from the run under Dynamo alone.
    """
    names = [run.names for run in (e.run(OWN), e.run(DYNAMO)) if run and run.names]
    return ", ".join(names[0]) if names else ""
