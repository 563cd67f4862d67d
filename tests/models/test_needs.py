"""The operators that the calls of models need of a backend."""

from __future__ import annotations

import pytest

from conformance.models import needs
from conformance.models.needs import Served
from tests.models.calls import call, recording, slot

BELOW = {
    "conv": ("_conv",),
    "_conv": ("conv_own", "add.Tensor"),
    "add.Tensor": ("add.out",),
    "loop": ("loop", "add.out"),
}
ROUTES = {
    "conv": "composite", "_conv": "composite", "conv_own": "unsupported", "add.Tensor": "composite",
    "add.out": "fallback", "mm": "native", "loop": "composite",
}  # fmt: skip
MODELS = (
    recording(call("conv", count=5), call("mm", count=7), name="a"),
    recording(call("conv", count=2), call("add.Tensor", slot(0, (4,)), count=3, made=16), name="b"),
)


def test_a_composite_needs_the_kernels_below_it() -> None:
    served = Served(ROUTES, BELOW)
    assert served.lacking("conv") == {"conv_own"}
    assert served.falling_back("conv") == {"add.out"}
    assert served.falling_back("loop") == {"add.out"}


def test_a_kernel_of_the_backend_s_own_needs_nothing_below() -> None:
    served = Served({**ROUTES, "conv": "native"}, BELOW)
    assert served.lacking("conv") == frozenset()
    assert served.reached("conv") == {"conv"}


def test_an_overload_without_a_route_is_taken_for_served() -> None:
    assert Served({}, BELOW).lacking("conv") == frozenset()


def test_operators_without_a_kernel_have_the_calls_of_each_model_that_need_them() -> None:
    (found,) = needs.lacking(MODELS, Served(ROUTES, BELOW)).items()
    assert (found[0], dict(found[1].models), found[1].overloads) == ("conv_own", {"a": 5, "b": 2}, {"conv_own"})


def test_operators_that_fall_back_have_the_bytes_of_their_calls() -> None:
    use = needs.falling_back(MODELS, Served(ROUTES, BELOW))["add"]
    assert dict(use.models) == {"a": 5, "b": 5}
    assert use.copied == 7 * 24 + 3 * (16 + 16)  # a (2, 3) argument of each conv; (4,) to CPU, and as much back


@pytest.mark.parametrize(
    ("overload", "operator"), [("add_.Tensor", "add"), ("mm.out", "mm"), ("__and__.Scalar", "__and__")]
)
def test_all_forms_of_an_operator_are_one(overload: str, operator: str) -> None:
    assert needs.operator_of(overload) == operator
