"""The replies of the children of a measured run, on CPU alone."""

from __future__ import annotations

import pytest

from conformance import backends
from conformance.perf.meter import Meter
from conformance.perf.model import End, Limits, Machine, round_from
from conformance.running.child import Spawned

SIZE = {"do": "size", "overload": "neg", "size": "small"}


@pytest.fixture(scope="module")
def meter() -> Meter:
    return Meter(backends.find("cpu"), "float32", seconds=0.01)


def test_a_spawned_child_answers_as_the_meter_that_it_is_made_from(meter: Meter) -> None:
    child = Spawned("conformance.perf.spawned", meter.recipe())
    try:
        assert child.ask(SIZE, 600) == meter.serve(SIZE)
    finally:
        child.close()


def test_a_measured_case_has_a_round_and_facts_if_they_are_asked_for(meter: Meter) -> None:
    request = {"do": "measure", "overload": "neg", "sample": meter.serve(SIZE)["sample"]}
    found = meter.serve(request | {"facts": True})
    assert found["end"] == End.MEASURED
    assert len(round_from(found["round"]).device) == 5
    assert found["work"]["read"] == found["work"]["written"] > 0
    assert "work" not in meter.serve(request | {"facts": False})


def test_a_call_that_cpu_refuses_is_unsuitable(meter: Meter) -> None:
    sample = meter.serve({"do": "size", "overload": "mm", "size": "small"})["sample"]
    sample[5][0][1] = [7, 1]  # the shape of the first argument, which the second no longer fits
    found = meter.serve({"do": "measure", "overload": "mm", "sample": sample, "facts": False})
    assert found["end"] == End.UNSUITABLE
    assert found["reason"].startswith("CPU raised ")


def test_an_overload_without_a_sample_says_why(meter: Meter) -> None:
    assert meter.serve(SIZE | {"overload": "bitwise_not"}) == {"reason": "no sample runs in float32"}


def test_a_device_that_cannot_multiply_has_no_limit_of_operations(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("conformance.perf.meter.COPIED", 1000)
    monkeypatch.setattr("torch.mm", refuse)
    found = Machine.from_json(meter.serve({"do": "limits"}))
    assert found.cpu.flops is None
    assert found.cpu.bandwidth
    assert found.cpu.launch
    assert Machine.from_json({"device": {}, "cpu": {}}) == Machine(Limits(), Limits())
