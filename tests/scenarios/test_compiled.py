"""Compiled programs: only the tier with all contexts has them, and a finding names the mode and the output."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance.scenarios import compiling
from conformance.scenarios.model import SCENARIOS, NotOffered
from conformance.vocabulary import Status
from tests.scenarios.observed import observe, planned, said

OFFSETS = "compiled_tensors:arguments_at_an_offset"


def test_the_wide_tier_alone_has_the_programs_that_are_compiled() -> None:
    compiled = {name for name, scenario in SCENARIOS.items() if scenario.compiles}
    found = {tier: {c.overload for c in planned("torch:cpu", tier).scenarios()} for tier in ("smoke", "full", "wide")}
    assert len(compiled) > 40
    assert found["wide"] >= compiled
    assert not found["full"] & compiled
    assert not found["smoke"] & compiled


def test_a_finding_names_the_mode_and_the_output(refnpu: Any) -> None:
    plan = planned("refnpu", "wide")
    refnpu.set_fault("compiled_launch_drops_offset")
    found = said(observe(plan, OFFSETS, timeout=300))
    assert "inductor: result 0, size 35" in found
    assert "aot_eager" not in found


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("compiled_kernel_by_name", "compiled_calls:functions_alike"),
        ("compiled_size_of_first_launch", "compiled_calls:of_any_size"),
        ("compiled_result_on_current_device", "compiled_calls:on_the_device_of_its_arguments"),
        ("compiled_result_made_contiguous", "compiled_tensors:strides_of_results"),
    ],
)
def test_a_fault_of_compiled_calls_is_found(
    refnpu: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, name: str
) -> None:
    plan = planned("refnpu", "wide")
    for awake, status in ((None, Status.PASS), (fault, Status.FAIL)):
        # Code compiled without the fault would hide it.
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / status))
        refnpu.set_fault(awake)
        assert observe(plan, name, timeout=300).status is status


def fail() -> torch.Tensor:
    raise RuntimeError("no module")


@pytest.mark.parametrize("lacking", ["Inductor compiles nothing for CPU here", ""])
def test_what_is_not_compiled_is_not_offered_where_inductor_compiles_nothing(
    monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    monkeypatch.setattr(compiling, "inductor_lacks", lambda: lacking)
    monkeypatch.setattr(compiling, "inductor_knows", lambda _: True)
    monkeypatch.setattr(
        compiling, "_outputs", lambda make, device, backend, dynamic: fail() if backend else eager_outputs()
    )
    if not lacking:
        with pytest.raises(RuntimeError, match="attention compiled for cpu"):
            compiling.by_inductor("attention", "cpu", fail)
        with pytest.raises(RuntimeError, match="inductor: RuntimeError: no module"):
            compiling._tried(nothing, "cpu", "inductor", "inductor", False)  # noqa: SLF001
        return
    assert str(compiling.by_inductor("attention", "cpu", fail)) == lacking
    found = compiling._tried(nothing, "cpu", "inductor", "inductor", False)  # noqa: SLF001
    assert {str(one) for one in found.values()} == {lacking}
    with pytest.raises(RuntimeError, match="eager"):
        compiling._tried(nothing, "cpu", "eager", "eager", False)  # noqa: SLF001


def nothing() -> compiling.Made:
    raise AssertionError("the outputs are given")


def eager_outputs() -> dict[str, torch.Tensor | NotOffered]:
    return {"result 0": torch.ones(2), "result 1": torch.ones(2)}


@pytest.mark.forked  # Inductor must not be imported yet
def test_a_warning_of_torchs_own_modules_is_not_what_inductor_lacks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiling.inductor_lacks.__wrapped__() == ""


def test_what_torch_compiles_to_the_same_wrong_values_for_cpu_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"result 0": torch.zeros(2), "result 1": torch.ones(2)}
    monkeypatch.setattr(
        compiling, "_outputs", lambda make, device, backend, dynamic: wrong if backend else eager_outputs()
    )
    excused = compiling._excused(nothing, dict(wrong), "inductor", False)  # noqa: SLF001
    assert isinstance(excused["result 0"], NotOffered)
    assert isinstance(excused["result 1"], torch.Tensor)
    worse = {"result 0": torch.full((2,), 7.0), "result 1": torch.ones(2)}
    judged = compiling._excused(nothing, dict(worse), "inductor", False)  # noqa: SLF001
    assert judged["result 0"] is worse["result 0"]


def test_strides_that_torch_compiles_wrongly_for_cpu_too_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    eager, wrong, worse = torch.ones(4, 2), torch.ones(2, 4).t(), torch.ones(4, 4)[:, ::2]
    monkeypatch.setattr(
        compiling, "_outputs", lambda make, device, backend, dynamic: {"result 0": wrong if backend else eager}
    )
    for found, excused in ((wrong, True), (worse, False), (eager, False)):
        judged = compiling._excused(nothing, {"result 0": found}, "inductor", False)  # noqa: SLF001
        assert isinstance(judged["result 0"], NotOffered) is excused


def test_a_result_of_another_dtype_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_outputs", lambda make, device, backend, dynamic: {"result 0": torch.ones(2)})
    found = torch.ones(2, dtype=torch.float64)
    assert compiling._excused(nothing, {"result 0": found}, "inductor", False)["result 0"] is found  # noqa: SLF001
