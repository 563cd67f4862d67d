"""Runs one scenario on CPU and on the device in a child process, and compares the results."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import warnings
from dataclasses import dataclass
from typing import Any

import torch

from conformance import scenarios
from conformance.backends import Capabilities
from conformance.explain import describe
from conformance.judging import compare
from conformance.judging.views import host_copy
from conformance.running.child import Child, Death, Hang
from conformance.support.signals import signal_name
from conformance.support.suggestions import unknown

EDGES = ("runner",)  # modules of this package that are not scenarios


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a scenario. ``failure`` is "" if the device agrees with CPU."""

    name: str
    compared: tuple[str, ...]  # what was compared, e.g. "tokens [2, 18]"
    failure: str = ""

    def text(self) -> str:
        if self.failure:
            return f"{self.name}: FAILED: {self.failure}"
        return f"{self.name}: equal to CPU: {', '.join(self.compared)}"


def names() -> list[str]:
    """Return the names of all scenarios, which are the names of their modules."""
    return sorted(m.name for m in pkgutil.iter_modules(scenarios.__path__) if m.name not in EDGES)


def lacking(name: str) -> str:
    """Return the package that the scenario needs and that is missing, "" if none is. Raises LookupError."""
    needs = getattr(_module(name), "NEEDS", "")
    return needs if needs and importlib.util.find_spec(needs) is None else ""


def run(name: str, backend: Capabilities, timeout: float) -> Result:
    """Run a scenario in a forked child. ``timeout``: seconds. Raises LookupError for an unknown name."""
    module = _module(name)
    child = Child(lambda _: _compare(module, backend))
    try:
        reply = child.ask(None, timeout)
    finally:
        child.close()
    if isinstance(reply, Hang):
        return Result(name, (), f"did not end within {timeout:g} s; its stack:\n{reply.log}")
    if isinstance(reply, Death):
        what = "the scenario itself broke" if reply.broken else f"the process died: {signal_name(reply.status)}"
        return Result(name, (), f"{what}\n{reply.log}")
    return Result(name, tuple(reply["compared"]), reply["failure"])


def _module(name: str) -> Any:
    if name not in names():
        raise LookupError(unknown("scenario", name, names()))
    return importlib.import_module(f"{scenarios.__name__}.{name}")


def _compare(module: Any, backend: Capabilities) -> dict[str, Any]:
    """Run both sides, in the child. Return the first difference."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # the parent's threads do not exist in the child, which would wait for them
    expected = module.run("cpu")
    try:
        actual = module.run(backend.device)
        backend.synchronize()
        failure = _damage(backend) or next(filter(None, (_differs(k, expected[k], actual[k]) for k in expected)), "")
    except Exception as e:  # noqa: BLE001  # whatever the device raises is the finding
        failure = f"the device raised {type(e).__name__}: {e}"
    return {"failure": failure, "compared": [f"{k} {list(t.shape)}" for k, t in expected.items()]}


def _damage(backend: Capabilities) -> str:
    lines = backend.verify_memory()
    return f"the allocator found damage: {'; '.join(lines)}" if lines else ""


def _differs(name: str, want: torch.Tensor, got: torch.Tensor) -> str:
    """Return the difference of two tensors, "" if they agree. Integers and bools must be equal, floats close."""
    found = compare.metadata(want, got, name) or compare.close(
        want, host_copy(got), None, compare.Closeness(ulps=16, accumulates=True, terms=want.numel()), name
    )
    return describe.mismatch(found) if found else ""
