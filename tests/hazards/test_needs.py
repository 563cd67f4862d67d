"""The features that hazards need of a backend: saving, seeds, and torch.accelerator only for streams and devices."""

from __future__ import annotations

from typing import IO, Any

import pytest
import torch

pytest.importorskip("refnpu", reason="the reference NPU is not installed")

from refnpu.conformance import Adapter  # only if it is installed

from conformance import torch_versions
from conformance.backends import Capabilities
from conformance.hazards import runner
from conformance.torch_versions import compilers

SAVING = [name for name in runner.names() if name.startswith("saving_") and name != "saving_stores_queued_values"]


def run(name: str, adapter: Any) -> runner.Result:
    return runner.run(name, Capabilities(adapter, "refnpu", "refnpu"), [runner.Schedule(0, 0)], 120)


class SavesZeros(Adapter):
    """A backend that saves zeros in place of values."""

    def save(self, value: Any, file: IO[bytes]) -> None:
        zeros = [leaf.cpu() * 0 for leaf in compilers.leaves_of(value)]
        torch.save(compilers.with_tensors(value, zeros), file)


@pytest.mark.parametrize("name", SAVING)
def test_a_backends_own_way_to_save_is_tried(name: str) -> None:
    failure = run(name, SavesZeros()).failure
    assert ": with the adapter's save, the " in failure
    assert "is 0, expected " in failure


def test_a_backend_without_its_own_way_is_tried_with_torch_save(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adapter, "save", None)
    real = torch.save
    monkeypatch.setattr(torch, "save", lambda value, file: real(value.cpu() * 0, file))
    assert ": with torch.save, the tensor that was stored first: " in run("saving_twice", Adapter()).failure


class CountsWaits(Adapter):
    """A backend whose third wait fails."""

    waits = 0

    def synchronize(self) -> None:
        super().synchronize()
        self.waits += 1
        if self.waits == 3:
            raise RuntimeError("the third wait")


def test_the_adapter_waits_for_a_device_that_is_not_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_versions, "accelerator_of", lambda _: None)
    assert run("kernels_run_in_order", Adapter()).text() == "kernels_run_in_order: held in 1 rounds"
    assert (
        "the device raised RuntimeError: the third wait" in run("launches_keep_their_arguments", CountsWaits()).failure
    )


@pytest.mark.parametrize(
    ("name", "lacking"),
    [
        ("read_after_wait_event", "streams"),
        ("pinned_source_freed", "pinned memory"),
        ("read_after_copy_between_devices", "two devices"),
    ],
)
def test_streams_pinned_memory_and_devices_are_those_of_the_accelerator(
    name: str, lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(name, Adapter()).lacking == ""
    monkeypatch.setattr(torch_versions, "accelerator_of", lambda _: None)
    assert run(name, Adapter()).lacking == lacking


def test_seeded_draws_need_a_generator_that_torch_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_versions, "seeds", lambda kind: False)
    found = run("seeding_while_draws_are_queued", Adapter()).lacking
    assert found == "generator that torch.manual_seed() seeds"


class Refuses(Adapter):
    """A backend whose ``save`` raises."""

    said = ""

    def save(self, value: Any, file: IO[bytes]) -> None:
        raise RuntimeError(self.said)


def test_a_native_stack_is_no_part_of_an_errors_message() -> None:
    refuses = Refuses()
    refuses.said = (
        "Check failed: HasValue() \n*** Begin stack trace ***\n\tmain\n\n*** End stack trace ***\nit is deleted"
    )
    assert "RuntimeError: Check failed: HasValue() \nit is deleted (round 0" in run("saving_twice", refuses).failure


def test_an_error_is_no_missing_dependency_and_is_quoted_without_the_dispatchers_table() -> None:
    refuses = Refuses()
    refuses.said = "Could not run 'aten::cat'.\n\nUndefined: registered at catch_all.cpp:25 [kernel]\nMeta: registered"
    failure = run("saving_twice", refuses).failure
    assert failure.endswith(
        "the device raised RuntimeError: Could not run 'aten::cat'. (round 0, behind long matrix products)"
    )
    assert "missing dependency" not in failure
