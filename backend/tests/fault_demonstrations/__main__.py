"""A program that runs demonstrations, each in children with its fault asleep and awake."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from math import inf, nan
from typing import Any

import torch

from fault_demonstrations import DEMONSTRATIONS

TRIES = 5  # of a demonstration with its fault awake


def raised(call: Callable[[], object]) -> str:
    """Return the class name of the exception that ``call`` raises, empty if it returns."""
    try:
        call()
    except Exception as e:  # noqa: BLE001 - whatever an op raises
        return type(e).__name__
    return ""


def result_on(device: str, source: str) -> Any:
    """Run a demonstration and return its result, a tensor on the host."""
    torch.manual_seed(0)
    names = {"torch": torch, "F": torch.nn.functional, "nan": nan, "inf": inf, "raised": raised, "d": device}
    exec(source, names)
    result = names["result"]
    return result.detach().cpu() if isinstance(result, torch.Tensor) else result


def difference(found: Any, expected: Any) -> str:
    """Return how a result differs from CPU's, empty if it does not. Signs of zeros count, rounding does not."""
    if not isinstance(expected, torch.Tensor):
        return "" if found == expected else f"{found!r} instead of {expected!r}"
    try:
        rounding = 1e-5 if expected.is_floating_point() or expected.is_complex() else 0
        torch.testing.assert_close(found, expected, rtol=rounding, atol=0, equal_nan=True)
    except AssertionError as e:
        return str(e)
    alike = expected.is_complex() or torch.equal(negative(found), negative(expected))
    return "" if alike else f"{found.tolist()} instead of {expected.tolist()}"


def negative(numbers: torch.Tensor) -> torch.Tensor:
    """Return a mask of the elements whose sign is set, without NaN."""
    return numbers.signbit() & ~numbers.isnan()


def shown(source: str, expected: Any, fault: str | None) -> str:
    """Run a demonstration in a forked child. Return the difference, empty if there is none."""
    from refnpu import testing

    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)  # recreates torch's pool; else autograd's threads all do it at once, and abort
            testing.set_fault(fault)
            try:
                with testing.fill(fresh="0xAB"):  # bytes that a fault leaves unwritten must not equal CPU's
                    said.write(difference(result_on("npu", source), expected))
            except Exception as e:  # noqa: BLE001 - the parent compares the text
                said.write(f"raised {e!r}")
            said.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return said.read() or ("" if status == 0 else f"died with status {status}")


def shown_awake(fault: str, expected: Any) -> str:
    """Return the difference with a fault awake, empty if no try shows one.

    Some faults show while work is late or while threads meet, and the machine may run this process too slowly for that.
    """
    return next((text for _ in range(TRIES) if (text := shown(DEMONSTRATIONS[fault], expected, fault))), "")


def main() -> None:
    """Print the difference that each, or each named, demonstration shows asleep and awake, as JSON.

    This process never uses the device.
    """
    import refnpu  # noqa: F401 - the device

    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(DEMONSTRATIONS)
    expected = {fault: result_on("cpu", DEMONSTRATIONS[fault]) for fault in chosen}
    difference(*[torch.zeros(1)] * 2)  # imports here what each child would import again
    asleep = {fault: shown(DEMONSTRATIONS[fault], expected[fault], None) for fault in chosen}
    awake = {fault: shown_awake(fault, expected[fault]) for fault in chosen}
    json.dump({"asleep": asleep, "awake": awake}, sys.stdout)


if __name__ == "__main__":
    main()
