"""A case as a script that needs only torch and the backend: it runs, and makes the exact arguments of the case."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.explain import program_script, repro
from conformance.judging.twins import CPU, Twins
from conformance.plan.plan import Plan
from conformance.plan.selection import Selection
from conformance.records import Observation
from conformance.scenarios import catalogue
from conformance.vocabulary import CellId, Status
from tests import forked_runs
from tests.records import failure


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(backends.find("torch:cpu"), Selection(), seed=20)


def case_id(plan: Plan, family: str, overload: str, dtype: str, layout: str) -> str:
    return plan.case_ids(CellId(family, overload, dtype, layout))[0]


CELLS = [
    ("masking", "masked_fill_.Scalar", "float32", "offset_gap"),
    ("masking", "masked_fill_.Scalar", "bfloat16", "expanded"),
    ("pointwise_binary", "add.Tensor", "complex64", "conj"),
    ("pointwise_binary", "add.Tensor", "float32", "aliased"),
    ("foreach", "_foreach_add_.List", "float32", "aliased"),
    ("concatenation", "cat", "int64", "mixed"),
    ("pointwise_unary", "neg", "float32", "values"),
    ("masking", "masked_fill_.Scalar", "float32", "sequence"),
]
IN_CONTEXTS = [
    ("masking", "masked_fill_.Scalar", "float32", context)
    for context in ("thread", "after_error", "inference_mode", "deterministic")
] + [
    ("masking", "masked_fill_.Scalar", "int64", "default_dtype"),
    ("matmul", "mm", "float32", "autocast"),
    ("pointwise_unary", "exp", "float32", "backward"),
    ("pointwise_unary", "exp", "float32", "overwritten"),
]


@pytest.mark.parametrize("cell", CELLS + IN_CONTEXTS, ids=lambda cell: "-".join(cell[1:]))
def test_a_script_runs_by_itself_and_finds_equal_sides_equal(
    plan: Plan, cell: tuple[str, str, str, str], tmp_path: Path
) -> None:
    case = repro.find(plan, case_id(plan, *cell))
    script = tmp_path / "repro.py"
    script.write_text(repro.script(plan, case))
    assert "conformance" not in script.read_text().partition('"""\n\nimport os')[2]
    ran = forked_runs.run((sys.executable, str(script)), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("the device does as CPU does\n")


@pytest.mark.parametrize("overload", ["exp_", "exp", "exp.out"])
def test_a_script_of_a_dtype_that_cpu_lacks_computes_in_a_wider_one(plan: Plan, overload: str) -> None:
    """CPU takes the place of a device that has these ops in float16."""
    found = repro.find(plan, case_id(plan, "pointwise_unary", overload, "float16", "contiguous"))
    text = repro.script(plan, replace(found, sample=replace(found.sample, dtypes=("float32",))))
    assert "CPU lacks the op in float16, computes in float32, and rounds." in text
    assert "wider=True" in text
    names: dict[str, Any] = {}
    exec(compile(text.partition("if __name__")[0], "repro", "exec"), names)
    computed_in = []

    def call(device: str, wide: Callable[[torch.Tensor], torch.Tensor] = lambda t: t, factor: float = 1.0) -> Any:
        result, arguments = names["call"](device, wide)
        if device != "cpu":
            result *= factor
        else:
            computed_in.append(result.dtype)
        return result, arguments

    bound = names["Bound"](False, 2.0, 2.0, torch.finfo(torch.float16).eps)
    assert not list(names["differences"](call, "cpu:0", ["self", "out"], bound, wider=True))
    assert computed_in == [torch.float32, torch.float64]
    assert list(names["differences"](partial(call, factor=1.1), "cpu:0", ["self", "out"], bound, wider=True))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell[1:]))
def test_a_script_makes_the_bytes_that_the_run_used(plan: Plan, cell: tuple[str, str, str, str]) -> None:
    case = repro.find(plan, case_id(plan, *cell))
    names: dict[str, object] = {}
    head = repro.script(plan, case).replace(f"result = torch.ops.aten.{repro.attribute(cell[1])}(", "result = seen(")
    names["seen"] = lambda *args, **_: args
    exec(compile(head, "repro", "exec"), names)
    made, _ = names["call"]("cpu")  # type: ignore[operator]  # the script's function
    wanted = Twins(plan.corpus.value).side(case, CPU).args
    for a, b in zip(_tensors(made), _tensors(wanted), strict=True):
        assert (a.dtype, a.shape, a.stride(), a.storage_offset()) == (b.dtype, b.shape, b.stride(), b.storage_offset())
        assert a.untyped_storage().tolist() == b.untyped_storage().tolist()
        assert (a.is_conj(), a.is_neg()) == (b.is_conj(), b.is_neg())


def _tensors(tree: object) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    return [t for part in tree for t in _tensors(part)] if isinstance(tree, (list, tuple)) else []


def test_a_script_makes_the_calls_before_on_the_device_alone(plan: Plan) -> None:
    cell = CellId("masking", "masked_fill_.Scalar", "float32", "sequence")
    case = next(c for c in plan.cases(cell) if len(c.before) == 1)
    text = repro.script(plan, case)
    calls: list[str] = []
    names: dict[str, object] = {}
    exec(compile(text, "repro", "exec"), names)
    names["before_0"] = calls.append
    names["call"]("cpu")  # type: ignore[operator]  # the script's function
    assert calls == []
    with contextlib.suppress(NotImplementedError):  # a meta tensor has no bytes to compare
        names["call"]("meta")  # type: ignore[operator]
    assert calls == ["meta"]


@pytest.mark.parametrize("number", [1.5, -0.0, 1e-300, complex(float("nan"), -0.0), complex(float("-inf"), 2), -0.0j])
def test_a_number_has_a_text_that_gives_it_back(number: complex) -> None:
    again = eval(repro.literal(number))
    assert type(again) is type(number)
    assert repr(again) == repr(number)


def test_a_script_leaves_an_argument_on_the_host_that_is_there_on_every_device(plan: Plan) -> None:
    cell = next(c for c in plan.cells("tensor_split.tensor_indices_or_sections") if c.dtype == "float32")
    text = repro.script(plan, plan.cases(cell)[0])
    storages = [line.strip() for line in text.splitlines() if line.strip() in ("device,", '"cpu",')]
    assert storages == ["device,", '"cpu",']


@pytest.mark.parametrize(("overload", "componentwise"), [("cumsum", True), ("_fft_c2c", False)])
def test_a_script_without_a_failure_has_the_bound_of_the_suite(overload: str, componentwise: bool, plan: Plan) -> None:
    cell = next(c for c in plan.cells(overload) if c.dtype in ("float32", "complex64"))
    text = repro.script(plan, plan.cases(cell)[0])
    assert ("neighbours=1024.0" in text) is componentwise


def test_a_script_names_the_results_that_follow_the_arguments(plan: Plan) -> None:
    def last_line(overload: str) -> str:
        case = repro.find(plan, case_id(plan, "pointwise_unary", overload, "float32", "contiguous"))
        return repro.script(plan, case).rstrip().splitlines()[-1]

    assert "on_device=[0]" in last_line("neg")
    assert "on_device" not in last_line("neg_")


def test_a_script_names_what_it_repeats(plan: Plan) -> None:
    case = repro.find(plan, case_id(plan, *CELLS[0]))
    text = repro.script(plan, case)
    assert text.startswith(f'"""{case.id}\n')
    assert "torch.manual_seed(20)" in text
    assert "torch.ops.aten.masked_fill_.Scalar(t0, t1, " in text


def test_a_case_that_is_not_there_is_told_with_what_is_near(plan: Plan) -> None:
    with pytest.raises(LookupError, match=r"near: masked_fill_\.Scalar"):
        repro.find(plan, "ops/masking.py::masked_fil_.Scalar[float32-expanded]#x")


def observed(plan: Plan, status: Status) -> Observation:
    case = case_id(plan, *CELLS[0])
    return Observation(CellId(*CELLS[0]), "native", status, 2, (failure(case),))


def test_a_failing_cell_is_kept_with_the_script_of_its_first_case(plan: Plan) -> None:
    seen = observed(plan, Status.CRASH)
    kept = repro.with_script(plan, seen).script
    assert kept == repro.script(plan, repro.find(plan, case_id(plan, *CELLS[0])), seen.failures[0])


def test_a_cell_that_does_not_fail_is_kept_without_one(plan: Plan) -> None:
    assert repro.with_script(plan, observed(plan, Status.UNSUPPORTED)).script == ""


def test_a_leak_of_a_whole_batch_has_no_case_and_so_no_script(plan: Plan) -> None:
    cell = CellId(*CELLS[0])
    lost = Observation(cell, "native", Status.FAIL, 2, (failure(str(cell), "leak"),))
    assert repro.with_script(plan, lost) == lost


def test_a_script_that_is_too_long_is_left_to_the_command(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repro, "LONGEST_KEPT", 100)
    assert repro.with_script(plan, observed(plan, Status.FAIL)).script == ""


def test_the_script_of_a_program_loads_torch_before_the_device() -> None:
    """A backend that torch loads automatically cannot be imported before torch."""
    backend = backends.find("torch:cpu")
    backend.module = "mine"
    lines = program_script.script(catalogue.find("masks:odd_bools"), backend, "the case").splitlines()
    assert lines.index("import torch") < lines.index("import mine  # loads the device")
