"""The OpInfos and the kinds of tests that a failing cell stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.device_tests import kinds as facts
from conformance.device_tests.mapping import NotMapped, OpInfoMap, places
from conformance.layouts import LAYOUTS
from conformance.records import CaseFailure, Mismatch, Observation
from conformance.torch_versions.device_tests import OpInfoName, op_tables
from conformance.vocabulary import CellId, Check, Status
from tests.records import observed

LABELS = {
    "relu": ["nn.functional.relu", "gone.from.torch"],
    "threshold_backward": ["nn.functional.relu.backward", "nn.functional.relu.backward"],
    "neg": ["neg.error", "acos.backward", "nn.functional.softmin.with_dtype"],
    "_softmax": ["softmax", "nn.functional.softmin.with_dtype"],
    "exp_": ["acos.inplace"],
}
OPS = OpInfoMap(
    [
        OpInfoName("neg", frozenset({"neg", "negative"})),
        OpInfoName("acos", frozenset({"acos"})),
        OpInfoName("softmax", frozenset({"softmax"})),
        OpInfoName("div.floor_rounding", frozenset({"div"})),
        OpInfoName("div.no_rounding_mode", frozenset({"div"})),
        OpInfoName("nn.functional.relu", frozenset({"relu"})),
        OpInfoName("nn.functional.softmin.with_dtype", frozenset({"softmin"})),
    ],
    ["neg", "neg_", "neg.out", "negative", "acos", "div.Tensor", "softmax.int", "_softmax", "relu", "relu_"],
    ["neg.out"],
    lambda overload: LABELS.get(overload, ()),
)


def failing(overload: str, cell: str = "float32-contiguous", **given: Any) -> Observation:
    return observed(overload, cell, Status.FAIL, **given)


def of(observation: Observation, ops: OpInfoMap = OPS) -> list[tuple[str, str]]:
    return list(places(observation, ops))


def why(observation: Observation) -> str:
    with pytest.raises(NotMapped) as e:
        of(observation)
    return str(e.value)


@pytest.mark.parametrize(
    ("overload", "kind"), [("neg", "plain"), ("neg_", "inplace"), ("neg.out", "out"), ("negative", "plain")]
)
def test_an_overload_stands_for_the_opinfo_of_its_operator(overload: str, kind: str) -> None:
    assert ("neg", kind) in of(failing(overload))


def test_all_variants_of_an_operator_have_its_failures() -> None:
    assert of(failing("div.Tensor")) == [("div.floor_rounding", "plain"), ("div.no_rounding_mode", "plain")]


def test_an_opinfo_without_an_operator_has_the_failures_of_what_it_was_recorded_to_call() -> None:
    assert of(failing("neg")) == [("neg", "plain"), ("nn.functional.softmin.with_dtype", "plain")]


def test_an_overload_that_no_opinfo_is_named_after_stands_for_those_that_call_it() -> None:
    assert of(failing("_softmax")) == [("nn.functional.softmin.with_dtype", "plain"), ("softmax", "plain")]
    assert of(failing("threshold_backward")) == [("nn.functional.relu", "backward")]
    assert of(failing("exp_")) == [("acos", "inplace")]


def test_labels_of_opinfos_that_torch_has_no_more_are_left_out() -> None:
    assert of(failing("relu")) == [("nn.functional.relu", "plain")]


def test_the_layout_says_which_tests_fail_unless_the_form_of_the_call_does() -> None:
    assert of(failing("acos", "float32-expanded")) == [("acos", "noncontiguous")]
    assert of(failing("acos", "float32-vmap")) == [("acos", "vmap")]
    assert of(failing("neg_", "float32-expanded")) == [("neg", "inplace")]


def test_a_call_that_cpu_refuses_fails_the_tests_of_errors_alone() -> None:
    def raised(device: Any, cpu: Any) -> Observation:
        facts = {"kind": "errors", "device": device, "cpu": cpu}
        failure = CaseFailure("acos[float32-contiguous]#s", (Mismatch(Check.ERROR_PARITY, "", facts),))
        return Observation(CellId("m", "acos", "float32", "contiguous"), "native", Status.FAIL, 1, (failure,))

    assert of(raised(None, "ValueError: no")) == [("acos", "errors")]
    assert of(raised("RuntimeError: no", None)) == [("acos", "plain")]


def test_what_these_tests_do_not_try_is_refused_with_the_reason() -> None:
    assert why(failing("acos", "float32-thread")) == "PyTorch's tests do not try 'thread'"
    assert why(failing("acos", checks=("untouched", "leak"))) == "PyTorch's tests do not check leak, untouched"
    assert why(failing("unheard_of")) == "no OpInfo calls the overload"
    scenario = Observation(CellId.of_scenario("masks:masked_fill"), "", Status.FAIL, 1)
    assert why(scenario) == "a scenario is no op"


def test_a_crash_fails_every_test_that_calls_the_op() -> None:
    assert of(observed("acos", status=Status.CRASH)) == [("acos", "plain")]
    assert of(failing("acos", checks=("leak", "value"))) == [("acos", "plain")]


def test_the_kinds_are_those_of_layouts_and_forms_that_exist() -> None:
    assert facts.KIND_OF_LAYOUT.keys() <= LAYOUTS.keys()
    assert {*facts.KIND_OF_LAYOUT.values(), *facts.FORMS} == facts.TESTS_OF_KIND.keys()
    assert {c.value for c in Check} > facts.SEEN_CHECKS


def test_pytorchs_own_table_of_ops_names_tests_of_every_kind() -> None:
    named = {test for op in op_tables() for test in _tests_named(op.decorators)}
    unknown = {
        kind: tests for kind, tests in facts.TESTS_OF_KIND.items() if kind != facts.PLAIN and not named & {*tests}
    }
    assert unknown.keys() <= {"functionalize"}  # few ops name its tests, and on some versions none does


def _tests_named(decorators: Iterable[Any]) -> Iterable[str]:
    return {name for d in decorators if (name := getattr(d, "test_name", None))}


@pytest.fixture(scope="module")
def installed() -> OpInfoMap:
    from conformance.device_tests.installed import opinfo_map

    return opinfo_map()


@pytest.mark.parametrize(
    ("overload", "op", "kind"),
    [
        ("add.Tensor", "add", "plain"),
        ("masked_fill_.Scalar", "masked_fill", "inplace"),
        ("special_airy_ai", "special.airy_ai", "plain"),
        ("relu", "nn.functional.relu", "plain"),
        ("_foreach_add_.List", "_foreach_add", "inplace"),
        ("max.dim_max", "max.reduction_with_dim", "out"),
        ("absolute", "abs", "plain"),
        ("linalg_norm", "linalg.norm", "plain"),
        ("native_layer_norm_backward", "native_layer_norm", "backward"),
    ],
)
def test_overloads_of_this_torch_are_found_in_its_table(
    installed: OpInfoMap, overload: str, op: str, kind: str
) -> None:
    assert (op, kind) in installed.ops_of(overload)
