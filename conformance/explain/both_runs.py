"""The second part of a scenario's standalone script: it runs the program on CPU and on the device, and compares.

Scripts contain a copy of the code below this docstring, so it may use only torch and the names of scenarios/model.py.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import torch

from conformance.scenarios.model import Broken, NotOffered, Program, Results


def main(run: Program, devices: list[str], exact: bool, bound: float, runs: int, in_thread: bool) -> None:
    """Exit with 1 if a result on one of the devices, which are tried in turn, differs from CPU.

    ``bound``: the allowed distance of a float, relative to the largest magnitude of its result; not used if ``exact``.
    ``runs``: number of processes, until one differs. ``in_thread``: also run on the first device in another thread.
    """
    for _ in range(runs - 1):
        child = os.fork()
        if child == 0:
            break  # this process is one of the runs
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            leave(1)
    torch.set_num_threads(1)
    theirs, offered = run("cpu"), set[str]()
    for device, thread in [*((device, False) for device in devices), *([(devices[0], True)] if in_thread else [])]:
        place = f"on {device}{' in another thread' if thread else ''}"
        try:
            ours = results_in_thread(run, device) if thread else run(device)
        except (NotOffered, NotImplementedError) as e:
            if not offered or not thread:
                print(f"not offered {place}: {e}")
                continue
            ours = dict.fromkeys(theirs, NotOffered(str(e)))
        pairs = {name: (theirs[name], ours[name]) for name in theirs if name in ours}
        found = [f"{name}: {said}" for name, pair in pairs.items() if (said := difference(*pair, exact, bound))]
        if theirs.keys() != ours.keys() and not any(isinstance(result, NotOffered) for result in ours.values()):
            found.append(f"{len(ours)} results on the device, {len(theirs)} on CPU")
        now = {name for name, pair in pairs.items() if not any(isinstance(result, NotOffered) for result in pair)}
        found += [f"{name}: not offered, as it was before" for name in sorted(offered - now) if thread]
        offered |= now if device == devices[0] else set()
        if found:
            print("\n".join(f"DIFFERS: {place}: {line}" for line in found))
            leave(1)
    if offered:
        print("the device does as CPU does")
    leave(0)


def results_in_thread(run: Program, device: str) -> Results:
    """Return the results of a program that runs in a new thread."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run, device).result()


def leave(code: int) -> NoReturn:
    """End the process at once: threads that die while Python ends could change the code."""
    sys.stdout.flush()
    os._exit(code)


def difference(
    theirs: torch.Tensor | NotOffered | Broken, ours: torch.Tensor | NotOffered | Broken, exact: bool, bound: float
) -> str:
    """Return how a result on the device differs, "" if it does not."""
    if isinstance(ours, Broken):
        marked = [f"{'->' if i == ours.at else '  '} {line}" for i, line in enumerate(ours.lines)]
        return "\n".join([": ".join(ours.error or ("a line does not hold",)), *marked])
    assert not isinstance(theirs, Broken)  # CPU has nothing to break
    if isinstance(theirs, NotOffered) or isinstance(ours, NotOffered):
        return ""
    want, got = (placed(tensor) for tensor in (theirs, ours))
    if want != got:
        return f"dtype, size, stride and offset are {got}, expected {want}"
    a, b = theirs.detach(), ours.detach().cpu()
    if not exact and a.is_floating_point():
        largest = float(a.double().nan_to_num(0, 0, 0).abs().max()) if a.numel() else 0.0
        same = torch.isclose(a.double(), b.double(), rtol=0.0, atol=bound * largest, equal_nan=True)
    else:
        same = (a == b) | ((a != a) & (b != b))
        if a.is_floating_point():
            same &= (a.signbit() == b.signbit()) | (a != a)
    wrong = (~same).nonzero()
    if not len(wrong):
        return ""
    at = tuple(wrong[0].tolist())
    return f"{len(wrong)} of {a.numel()} elements differ, the first at {at}: {b[at].item()}, expected {a[at].item()}"


def placed(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return dtype, size, stride and offset of a tensor. Strides of a tensor without elements are undefined."""
    place = (tuple(tensor.stride()), tensor.storage_offset()) if tensor.numel() else ()
    return tensor.dtype, tuple(tensor.shape), *place
