"""Recordings of calls without bytes, like the recorded models that ship with the suite."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.calls import file
from conformance.calls.recorded import recording_of
from conformance.calls.recording import Recorder

META = torch.device("meta")


def test_calls_on_meta_are_recorded_with_sizes_and_strides_and_no_bytes() -> None:
    x = torch.empty(2, 3, device=META)
    with Recorder(META, with_bytes=False) as recorder:
        x.t().add(1.5)
        x.t().add(1.5)
    assert [call.overload for call in recorder.calls] == ["t", "add.Tensor"]
    assert recorder.counts == [2, 2]
    (placed, *_) = recorder.calls[1].case.placements
    assert (placed.size, placed.stride) == ((3, 2), (1, 3))
    assert all(held.numel() == 0 for call in recorder.calls for held in call.storages.values())


def test_the_bytes_of_new_results_are_recorded_and_those_of_views_are_not() -> None:
    x = torch.empty(2, 3, device=META)
    with Recorder(META, with_bytes=False) as recorder:
        x.t()
        x.add_(1)
        x.double()
        torch.empty(5, device=META)
    made = {call.overload: n for call, n in zip(recorder.calls, recorder.made, strict=True)}
    assert made == {"t": 0, "add_.Tensor": 0, "_to_copy": 48, "empty.memory_format": 20}


def test_calls_on_the_host_alone_are_not_recorded() -> None:
    with Recorder(META, with_bytes=False) as recorder:
        torch.ones(2).neg()
    assert recorder.calls == []


@pytest.mark.parametrize("with_counts", [True, False])
def test_a_file_of_a_program_is_read_as_a_recorded_model(tmp_path: Path, with_counts: bool) -> None:
    x = torch.ones(2, 3)
    with Recorder(torch.device("cpu")) as recorder:
        x.neg()
        x.neg()
    path = tmp_path / "mine.safetensors"
    facts = {"counts": recorder.counts, "made": recorder.made} if with_counts else {}
    file.save(path, recorder.calls, facts=facts)
    found = recording_of(path)
    (call,) = found.calls
    expected = ("mine", "neg", 2, 24 + 24) if with_counts else ("mine", "neg", 1, 24)
    assert (found.name, call.overload, call.count, call.copied) == expected
