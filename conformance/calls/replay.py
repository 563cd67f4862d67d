"""The replay of recorded calls on CPU and on a device, in a child process, with a comparison of the outcomes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from conformance.backends import Capabilities
from conformance.calls import judging
from conformance.calls.model import Call
from conformance.explain import describe, mismatch_text
from conformance.plan.arguments import placed_arguments
from conformance.running.child import Child, Death, Hang
from conformance.support.signals import signal_name


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of one call. ``failure``: "" if both sides agree. ``skipped``: why nothing was compared, or ""."""

    call: Call
    failure: str = ""
    skipped: str = ""

    def text(self) -> str:
        """Return the call, its arguments and the differences as text."""
        lines = [f"{self.call.overload} ({self.call.case.sample.name})"]
        lines += [f"  {line}" for line in map(describe.argument, placed_arguments(self.call.case))]
        return "\n".join([*lines, *(f"  {line}" for line in self.failure.splitlines())])


def replay(calls: Sequence[Call], backend: Capabilities, timeout: float) -> Iterator[Replayed]:
    """Yield the result of each call. ``timeout``: seconds for each call. A child that dies is replaced by a new one."""
    torch.set_num_threads(1)  # a forked child does not have its parent's threads
    child: Child | None = None
    for index, call in enumerate(calls):
        child = child or Child(lambda i: _judge(calls[i], backend))
        reply = child.ask(index, timeout)
        if isinstance(reply, (Death, Hang)):
            child.close()
            child = None
            yield Replayed(call, _died(reply))
        else:
            yield Replayed(call, reply["failure"], reply["skipped"])
    if child:
        child.close()


def _judge(call: Call, backend: Capabilities) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    verdict = judging.again(call, backend)
    return {
        "failure": "\n".join(f"{m.check}: {mismatch_text.text(m)}" for m in verdict.mismatches),
        "skipped": verdict.skipped,
    }


def _died(reply: Death | Hang) -> str:
    if isinstance(reply, Hang):
        return f"the call did not end within {reply.seconds:g} s\n{reply.log}"
    how = signal_name(reply.status)
    return f"the process died of {how}\n{reply.log}"
