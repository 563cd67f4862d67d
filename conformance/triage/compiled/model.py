"""The facts about a program under ``torch.compile``, as frozen records. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

PLAIN = ""  # in place of a backend's name: torch.compile does nothing
OWN = "own"  # the backend that the program gives
DYNAMO = "eager"


class Kind(str, Enum):
    """The kind of a failure."""

    VALUES = "values"
    RAISED = "raised"
    DIED = "died"  # of a signal
    HUNG = "hung"
    EXITED = "exited"  # with another exit code than without torch.compile


@dataclass(frozen=True, slots=True)
class Wrong:
    """The first failure of a run."""

    kind: Kind
    message: str  # a difference, the first line of an error, a signal, an exit code
    error: str = ""  # the type of an error
    phase: str = ""  # "compile", "forward" or "backward"; "" if outside of a graph
    subject: str = ""  # what differs, such as "result 0"
    graph: int = -1  # number of the graph, in the order of compilation; -1 if outside of one
    call: int = -1  # number of the call of the graph
    where: str = ""  # the line of the program that called the compiled function
    compiler: str = ""  # the line of a C++ compiler that refuses the generated code

    @property
    def signature(self) -> tuple[str, str]:
        """The facts that must stay equal while the failing graph is reduced."""
        return self.kind.value, self.error

    def text(self) -> str:
        """Return one line."""
        what = {
            Kind.VALUES: f"{self.subject}: {self.message}" if self.subject else self.message,
            Kind.RAISED: f"{self.error}: {self.message}",
            Kind.DIED: f"the process died of {self.message}",
            Kind.HUNG: f"the process did not end within {self.message}",
            Kind.EXITED: f"the program ended with {self.message}",
        }[self.kind]
        place = f"graph {self.graph}" + (f", call {self.call}" if self.call >= 0 else "") if self.graph >= 0 else ""
        return f"{what} ({place}, {self.phase})" if place else what


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program. ``backend``: a backend's name, PLAIN or OWN."""

    backend: str
    wrong: Wrong | None = None  # a difference from the same graph run op by op, or an error of the compiler
    ended: Wrong | None = None  # how the program itself ended, None if well
    graphs: int = 0
    calls: int = 0  # calls of graphs that were compared
    unjudged: tuple[tuple[str, int], ...] = ()  # reason -> calls of graphs that could not be compared
    names: tuple[str, ...] = ()  # the backends that the program gives
    lost: str = ""  # why the failing graph could not be stored
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Blame:
    """The first wrong backend by torch's CompilerBisector, and its part. ``before``: the last backend that is right."""

    backend: str
    before: str
    subsystem: str = ""
    number: int = 0  # index of the subsystem's application that is wrong
    applied: str = ""  # the name of this application
    of: str = "the failing graph"  # the name of the graph or program that was compiled again
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the failing graph, and facts about it."""

    text: str
    nodes: tuple[int, int] = (0, 0)  # of the graph: before and after the minifier
    elements: tuple[int, int] = (0, 0)  # of its inputs: before and after shrinking
    fails: tuple[int, int] = (0, 0)  # the numbers of failures and of runs in fresh processes
    kernels: tuple[str, ...] = ()  # that Inductor generates for it
    on_cpu: str = ""  # how the same graph ends on CPU: "right", "as wrong", or another error; "" if not tried


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions, the processor and the compiler that generated code depends on."""

    torch: str
    python: str
    cpu: str
    vector: str = ""
    compiler: str = ""
    flags: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All facts."""

    program: tuple[str, ...]
    versions: Versions
    eager: str = ""  # the first op that is wrong without torch.compile, "" if none
    watched: int = -1  # ops that were compared with CPU without torch.compile, -1 if that was not done
    runs: tuple[Run, ...] = ()
    differs: str = ""  # a result of a compiled function that Dynamo alone changes
    blame: Blame | None = None
    script: Script | None = None
    notes: tuple[str, ...] = field(default=())
    complete: bool = False

    def noted(self, *notes: str) -> Evidence:
        """Return the evidence with these notes added."""
        return replace(self, notes=(*self.notes, *notes))

    def run(self, backend: str) -> Run | None:
        """Return the run with a backend, None if there is none."""
        return next((r for r in self.runs if r.backend == backend), None)
