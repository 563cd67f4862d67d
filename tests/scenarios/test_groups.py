"""Process groups of two processes: a feature that the device or the machine lacks is not offered, and no failure."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.scenarios import groups
from conformance.scenarios.model import NotOffered, Results
from conformance.vocabulary import Status
from tests.scenarios.observed import observe, planned

# If a process has started the server of new processes or has used the device, its forked children cannot do so.
pytestmark = pytest.mark.forked


def nothing(device: str) -> Results:
    return {}


def fails(device: str) -> Results:
    raise ValueError(f"no sum on {device}")


@pytest.mark.usefixtures("refnpu")
def test_a_device_without_a_process_group_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(torch.distributed.Backend.default_device_backend_map, "npu")
    with pytest.raises(NotOffered, match="Default backend not registered for device : npu:0"):
        groups._meet(nothing, "npu:0", 0, str(tmp_path), 2)  # noqa: SLF001


@pytest.mark.usefixtures("refnpu")
def test_one_device_alone_is_too_few_for_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFNPU_DEVICES", "1")  # the new processes read it
    found = observe(planned("refnpu"), "groups:collectives_of_two_processes")
    assert (found.status, found.reason) == (Status.UNSUPPORTED, "not offered: a device for each of 2 processes")


def test_a_device_without_a_module_is_not_known_to_new_processes() -> None:
    with pytest.raises(NotOffered, match=r"a module of the device: .*meta"):
        groups.in_a_group("meta", nothing)


def test_an_error_on_cpu_leaves_nothing_to_compare_with() -> None:
    with pytest.raises(NotOffered, match=r"2 processes on CPU, for comparison: process \d raised ValueError: no sum"):
        groups.in_a_group("cpu", fails)


@pytest.mark.parametrize("shared", [False, True])
def test_two_calls_in_flight_that_share_a_buffer_are_found(shared: bool) -> None:
    buffer = torch.zeros(4)

    class Work:
        def __init__(self, result: torch.Tensor) -> None:
            self.result = result
            self.staged = buffer if shared else torch.zeros(4)
            self.staged.copy_(result)

        def wait(self) -> None:
            self.result.copy_(self.staged)

    def start(dist: object, x: torch.Tensor) -> tuple[torch.Tensor, Work]:
        return x, Work(x)

    first, second = groups._two_in_flight(start)(None, torch.arange(4.0))  # noqa: SLF001
    assert torch.equal(second, torch.arange(4.0) + 100)
    assert torch.equal(first, torch.arange(4.0)) is not shared
