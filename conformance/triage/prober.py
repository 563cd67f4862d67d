"""A process that answers questions about recorded calls and memory in one environment, each in a forked child.

``python -m conformance.triage.prober BACKEND`` reads lines with JSON lists, ``[question, argument...]``, and answers
with lines of JSON objects. If the child dies, the answer is ``{"died": signal}``, for steps with the index of the step
that ran as ``"at"``.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from conformance import backends
from conformance.backends import Capabilities
from conformance.calls import file, judging, sequence
from conformance.calls.model import Call, RecordedTwins
from conformance.calls.sequence import Step
from conformance.explain import mismatch_text
from conformance.inventory import call_of
from conformance.judging import kernels as kernels_
from conformance.judging.views import host_copy
from conformance.records import Mismatch
from conformance.running.child import Child, Death, Hang
from conformance.support.shared_page import SharedPage
from conformance.support.signals import signal_name
from conformance.triage import rerun
from conformance.triage.conclusions import COPIES

TIMEOUT = 20.0  # seconds an answer may take
BLOCKS = (1, 3, 7, 16, 63, 64, 65, 100, 255, 1000, 4095, 4096, 4097, 20_000)  # bytes
ROUNDS = 4
THREADS = 4
_page = SharedPage("<i")  # shared with the children: the index of the step that runs


def judge(backend: Capabilities, path: str) -> dict[str, Any]:
    """Repeat the calls of a file in order. Return the first difference of the last call."""
    mismatches: list[Mismatch] = []
    for call in file.load(Path(path)):
        mismatches = judging.again(call, backend).mismatches
    return _first(mismatches)


def steps(backend: Capabilities, path: str, kept: list[int]) -> dict[str, Any]:
    """Repeat these steps of a file in one process with shared storages. Return the last step's first difference."""
    mismatches = rerun.last(sequence.part(_sequence(path), set(kept)), backend, _page.write)
    return _first(mismatches)


def _first(mismatches: Sequence[Mismatch]) -> dict[str, Any]:
    if not mismatches:
        return {"check": ""}
    return {"check": mismatches[0].check.value, "message": mismatch_text.text(mismatches[0])}


@lru_cache(maxsize=1)
def _sequence(path: str) -> list[Step]:
    return sequence.load(Path(path))[0]


def kernels(backend: Capabilities, path: str, dense: bool) -> dict[str, Any]:
    """Return the dispatcher's calls inside the call. With ``dense``, its arguments are contiguous."""
    (call,) = file.load(Path(path))
    side = RecordedTwins(call.storages).side(call.case, torch.device(backend.device))
    op = call_of(call.overload)
    args = [_dense(a) for a in side.args] if dense else side.args

    def run() -> None:
        op(*args, **side.kwargs)
        backend.synchronize()

    return {"kernels": kernels_.ran(run)}


def _dense(value: Any) -> Any:
    """Return a contiguous tensor with the same values on the same device, without a strided copy on the device."""
    if not isinstance(value, torch.Tensor):
        return value
    return host_copy(value).contiguous().to(value.device)


def copy(backend: Capabilities, path: str, dense: bool) -> dict[str, Any]:
    """Copy each tensor of the call to a new contiguous tensor; for ``copy_``, to its target. Return the first error."""
    (call,) = file.load(Path(path))
    primitive = call_of(COPIES[0])
    for source, target in _pairs(call, torch.device(backend.device), dense):
        want = torch.empty_like(host_copy(target), memory_format=torch.contiguous_format).copy_(host_copy(source))
        primitive(source, target)
        backend.synchronize()
        if not torch.equal(host_copy(target).nan_to_num(), want.nan_to_num()):
            figures = f"size {list(source.shape)}, stride {list(source.stride())}, offset {source.storage_offset()}"
            return {"wrong": f"{COPIES[0]} of {source.dtype}, {figures}"}
    return {"wrong": ""}


def _pairs(call: Call, device: torch.device, dense: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
    side = RecordedTwins(call.storages).side(call.case, device)
    tensors = [_dense(a.tensor) if dense else a.tensor for a in side.arguments]
    if call.case.sample.overload == "copy_" and len(tensors) == 2:
        target = tensors[0]
        return [(tensors[1].expand(target.shape), target)]
    on_device = [t for t in tensors if t.device.type == device.type]
    return [(t, _dense(host_copy(t).contiguous().to(device))) for t in on_device]


def blocks(backend: Capabilities, threads: int) -> dict[str, Any]:
    """Write memory blocks of many sizes and read them, free some, and repeat. Return the first error."""
    problems: list[str] = []
    workers = [threading.Thread(target=_exercise, args=(backend, i, problems)) for i in range(threads - 1)]
    for worker in workers:
        worker.start()
    _exercise(backend, threads, problems)
    for worker in workers:
        worker.join()
    problems += backend.verify_memory()
    return {"problem": problems[0] if problems else ""}


def _exercise(backend: Capabilities, seed: int, problems: list[str]) -> None:
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    for n in range(ROUNDS * len(BLOCKS)):
        size = BLOCKS[(n * 5 + seed) % len(BLOCKS)]
        content = ((torch.arange(size) * 31 + n * 17 + seed) % 251).to(torch.uint8)
        kept.append((content, content.to(backend.device)))
        if n % 3 == 2:
            problems += _changed(*kept.pop(n % len(kept)))
    for pair in kept:
        problems += _changed(*pair)


def _changed(content: torch.Tensor, block: torch.Tensor) -> list[str]:
    return [] if torch.equal(block.cpu(), content) else [f"a block of {content.numel()} bytes changed without a write"]


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "judge": judge, "kernels": kernels, "copy": copy, "blocks": blocks, "steps": steps,
}  # fmt: skip


def answer(backend: Capabilities, question: str, *arguments: Any) -> dict[str, Any]:
    """Answer one question in a child."""
    torch.set_num_threads(1)  # the parent's threads do not exist in a child
    _page.write(-1)
    if question == "steps":
        _sequence(arguments[0])  # read it once for all children
    child = Child(lambda _: _try(QUESTIONS[question], backend, *arguments))
    try:
        reply = child.ask(None, TIMEOUT)
    finally:
        child.close()
    if isinstance(reply, dict):
        return reply
    (at,) = _page.read()
    return {"died": _how(reply)} | ({"at": at} if at >= 0 else {})


def _how(end: Death | Hang) -> str:
    return "timeout" if isinstance(end, Hang) else signal_name(end.status)


def _try(ask: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    try:
        return ask(*arguments)
    except Exception as e:  # noqa: BLE001  # what an op of the device raises is an answer
        return {"raised": f"{type(e).__name__}: {e}"}


def main(arguments: list[str]) -> None:
    """Answer questions until the end of standard input."""
    with os.fdopen(os.dup(1), "w") as replies:
        os.dup2(2, 1)  # output of the backend must not mix with the answers
        backend = backends.find(*arguments)
        for line in sys.stdin:
            replies.write(json.dumps(answer(backend, *json.loads(line))) + "\n")
            replies.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
