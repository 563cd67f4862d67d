"""The operators that a backend lacks, at the end of a run."""

from __future__ import annotations

from conformance.models import file
from conformance.results import unimplemented
from conformance.results.unimplemented import Unimplemented
from tests.models.calls import call, recording

BELOW = {"conv": ("conv_own",), "conv_back": ("conv_own",)}
ROUTES = {
    "conv": "composite",
    "conv_back": "composite",
    "conv_own": "unsupported",
    "mm": "native",
    "relu_": "unsupported",
}
MODELS = (recording(call("conv", count=2), name="a"), recording(call("conv", count=5), call("relu_"), name="b"))


def test_operators_are_listed_by_the_calls_that_need_them() -> None:
    assert unimplemented.unimplemented(ROUTES, MODELS, BELOW) == [
        Unimplemented("conv_own", {"b": 5, "a": 2}, 2), Unimplemented("relu", {"b": 1}, 0),
    ]  # fmt: skip


def test_the_first_operators_take_a_line_each() -> None:
    found = [Unimplemented(f"op{i}", {"resnet": 9 - i, "unet": 1}, i) for i in range(7)]
    lines = unimplemented.text(found).splitlines()
    assert lines[1:3] == [
        "  op0: 10 calls of resnet, unet; 0 other overloads cannot run without it",
        "  op1: 9 calls of resnet, unet; 1 other overload cannot run without it",
    ]
    assert lines[-1] == "  ... and 2 more"
    assert len(lines) == 1 + unimplemented.SHOWN + 1


def test_a_backend_that_has_all_of_them_has_no_lines() -> None:
    assert unimplemented.text([]) == ""
    assert unimplemented.of_summary({"routes": dict.fromkeys(file.overloads(), "native")}) == []


def test_a_run_without_stored_routes_says_nothing() -> None:
    assert unimplemented.of_summary({}) == []


def test_a_run_is_held_against_the_models_that_ship_with_the_suite() -> None:
    routes = dict.fromkeys(file.overloads(), "composite") | {"convolution_overrideable": "unsupported"}
    (found,) = unimplemented.of_summary({"routes": routes})
    assert found.operator == "convolution_overrideable"
    assert list(found.models) == ["unet", "resnet", "whisper", "vit"]
    assert found.standing == 2  # convolution, _convolution
