"""Each context makes the call in its own way: it finds a defect that only it shows, and a right device passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts, torch_versions
from conformance.backends import Capabilities
from conformance.contexts.autocast import Autocast
from conformance.contexts.backward import Backward
from conformance.contexts.forward_ad import ForwardAd
from conformance.contexts.model import How
from conformance.judging.judge import CaseResult, Judge
from conformance.judging.tolerances import Criteria
from conformance.judging.twins import Twins
from conformance.layouts import CONTEXTS
from conformance.ops.family import OpFacts
from conformance.records import Mismatch
from conformance.vocabulary import Check, Route
from tests.two_sides import Device, case_of, judge, value_of

pytestmark = pytest.mark.forked  # autograd starts threads

CPU = torch.device("cpu")


def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def wrong_in_a_thread(x: torch.Tensor) -> torch.Tensor:
    return x + (1 if threading.current_thread() is threading.main_thread() else 2)


def asking_for_the_version(x: torch.Tensor) -> torch.Tensor:
    return x + 1 + 0 * x._version  # noqa: SLF001 - what a kernel may do by mistake


def in_the_default_dtype(x: torch.Tensor) -> torch.Tensor:
    return (x + 1).to(torch.get_default_dtype())  # the default floating-point dtype, for any argument


def wrong_if_deterministic(x: torch.Tensor) -> torch.Tensor:
    return x + (2 if torch.are_deterministic_algorithms_enabled() else 1)


_refused: list[int] = []


def wrong_after_an_error(x: torch.Tensor) -> torch.Tensor:
    return x + (2 if _refused else 1)


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record each request for a tensor that is too large."""
    given = torch.empty

    def empty(*size: object, **kwargs: object) -> torch.Tensor:
        if size == (1 << 60,):
            _refused.append(1)
        return given(*size, **kwargs)

    _refused.clear()
    monkeypatch.setattr(torch, "empty", empty)


WRONG = {
    "thread": (wrong_in_a_thread, Check.VALUE),
    "after_error": (wrong_after_an_error, Check.VALUE),
    "inference_mode": (asking_for_the_version, Check.ERROR_PARITY),
    "deterministic": (wrong_if_deterministic, Check.VALUE),
    "default_dtype": (in_the_default_dtype, Check.DTYPE),
}


def found(wrong: Callable[[torch.Tensor], torch.Tensor], context: str) -> list[Mismatch]:
    result = judge(plus_one, wrong, context=contexts.of(context))
    assert result.skipped == ""
    return result.mismatches


@pytest.mark.parametrize("context", WRONG)
@pytest.mark.usefixtures("errors")
def test_a_context_finds_what_is_wrong_under_it(context: str) -> None:
    wrong, check = WRONG[context]
    assert [m.check for m in found(wrong, context)] == [check]


@pytest.mark.parametrize("context", WRONG)
@pytest.mark.usefixtures("errors")
def test_a_plain_call_does_not_find_it(context: str) -> None:
    assert found(WRONG[context][0], "contiguous") == []


@pytest.mark.parametrize("context", WRONG)
def test_a_right_device_passes_under_a_context(context: str) -> None:
    assert found(plus_one, context) == []


def test_each_context_has_a_class_and_a_description() -> None:
    assert list(contexts.CONTEXTS) == list(CONTEXTS)


@pytest.mark.parametrize("context", [name for name, context in contexts.CONTEXTS.items() if context.op_alone])
def test_cpu_makes_the_plain_call_where_the_op_alone_is_tried(context: str) -> None:
    called: list[tuple[object, int]] = []

    def noting(x: torch.Tensor) -> torch.Tensor:
        called.append((x, threading.get_ident()))
        return x

    x = torch.ones(2)
    assert contexts.CONTEXTS[context].call(noting, CPU, How("", "", nullcontext), [x], {}) is x
    assert called == [(x, threading.get_ident())]
    assert contexts.CONTEXTS[context].on_cpu(noting, "neg", "") is noting


def test_an_error_in_a_thread_is_raised_where_it_is_called() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise IndexError("no such row")

    (mismatch,) = judge(plus_one, refuses, context=contexts.of("thread")).mismatches
    assert mismatch.facts["device"] == {"type": "IndexError", "message": "no such row"}


def test_cpu_alone_is_called_as_the_context_calls_it() -> None:
    seen: list[bool] = []

    def noting(x: torch.Tensor, *_: object) -> torch.Tensor:
        seen.append(torch.are_deterministic_algorithms_enabled())
        return x + 1

    device = Capabilities(Device(), "hand")
    context = contexts.of("deterministic")
    alone = Judge(Twins(value_of), device, noting, Route.NATIVE, Criteria(OpFacts("misc")), 20, context)
    assert alone.reference_is_sound(case_of())
    assert seen
    assert all(seen)


class Squared(torch.autograd.Function):
    """x * x, whose gradient is right for contiguous gradients of the result, and wrong for others."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        (x,), (gradient,) = ctx.saved_tensors, gradients
        return 2 * x * gradient if gradient.is_contiguous() else 3 * x * gradient


def squared(x: torch.Tensor) -> torch.Tensor:
    return x * x


def gradients_of(wrong: Callable[[torch.Tensor], torch.Tensor], variant: str) -> CaseResult:
    case = replace(case_of(), variant=variant)
    return judge(squared, wrong, case, route=Route.COMPOSITE, context=contexts.of("backward"))


@pytest.mark.parametrize("variant", ["dense", "strided", "expanded", "accumulate"])
def test_gradients_are_compared_with_those_of_cpu(variant: str) -> None:
    assert gradients_of(squared, variant).mismatches == []
    (mismatch,) = gradients_of(lambda x: x * x.detach(), variant).mismatches
    assert (mismatch.check, mismatch.subject[:6]) == (Check.VALUE, "result")


def test_a_gradient_that_is_wrong_for_some_layouts_is_found() -> None:
    def found(variant: str) -> bool:
        return bool(gradients_of(Squared.apply, variant).mismatches)

    assert {v: found(v) for v in ("dense", "strided", "expanded")} == {
        "dense": False, "strided": True, "expanded": True,
    }  # fmt: skip


class Doubled(torch.autograd.Function):
    """2 * x and 3 * x, whose gradient is lost if the first result has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> torch.Tensor | None:
        first, last = gradients
        if first is None:
            return None
        return 2 * first if last is None else 2 * first + 3 * last


@pytest.mark.parametrize(("variant", "wrong"), [("dense", False), ("first", False), ("last", True)])
def test_a_gradient_that_needs_all_results_is_found_by_one_of_them(variant: str, wrong: bool) -> None:
    case = replace(case_of(), variant=variant)
    context = contexts.of("backward")
    found = judge(lambda x: (2 * x, 3 * x), Doubled.apply, case, route=Route.COMPOSITE, context=context)
    assert bool(found.mismatches) is wrong


@pytest.mark.parametrize("variant", ["first", "last"])
def test_of_one_result_none_is_first_or_last(variant: str) -> None:
    assert "no other one" in gradients_of(squared, variant).skipped


@pytest.mark.parametrize("variant", ["dense", "accumulate", "each"])
def test_a_device_whose_results_need_no_gradient_where_those_of_cpu_do_is_wrong(variant: str) -> None:
    how, given = How(variant, "", nullcontext), [torch.ones(3), torch.ones(3)]
    assert Backward.call(torch.hypot, CPU, how, given, {})
    with pytest.raises(AssertionError, match="no result needs a gradient"):
        Backward.call(lambda *_: torch.ones(3), torch.device("meta"), how, given, {})
    with pytest.raises(NotImplementedError, match="no result needs a gradient"):
        Backward.call(lambda *_: torch.ones(3), CPU, how, given, {})


def test_gradients_are_asked_for_where_like_arguments_are_equal() -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    at_equal = How("equal", "", nullcontext)
    first, second = Backward.call(torch.maximum, CPU, at_equal, [x, y], {})
    assert torch.equal(first, second)  # at a tie, each argument gets half
    with pytest.raises(NotImplementedError, match="no argument is like the first one"):
        Backward.call(torch.maximum, CPU, at_equal, [x, y[:1]], {})


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch calls it itself
@pytest.mark.parametrize("variant", ["all", "one", "last"])
def test_a_device_whose_results_have_no_tangent_where_those_of_cpu_do_is_wrong(variant: str) -> None:
    how, given = How(variant, "", nullcontext), [torch.ones(3), torch.ones(3)]
    assert ForwardAd.call(torch.hypot, CPU, how, given, {})
    with pytest.raises(AssertionError, match="no result has a tangent"):
        ForwardAd.call(lambda *_: torch.ones(3), torch.device("meta"), how, given, {})
    with pytest.raises(NotImplementedError, match="no result has a tangent"):
        ForwardAd.call(lambda *_: torch.ones(3), CPU, how, given, {})


def test_a_second_gradient_through_a_kept_graph_that_is_wrong_is_found() -> None:
    class Spoiled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x.clone())
            return x * x

        @staticmethod
        def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            found = 2 * x * gradients[0]
            x.data.zero_()
            return found

    assert gradients_of(Spoiled.apply, "dense").mismatches == []
    assert [m.check for m in gradients_of(Spoiled.apply, "accumulate").mismatches] == [Check.VALUE]


def test_a_graph_that_is_recorded_only_for_the_first_argument_is_found_by_each_argument_alone() -> None:
    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.hypot(x, y) if x.requires_grad else torch.hypot(x, y).detach()

    def gradients(op: Callable[..., torch.Tensor], variant: str) -> Any:
        return Backward.call(op, CPU, How(variant, "", nullcontext), [torch.ones(3), torch.full((3,), 2.0)], {})

    assert all(map(torch.equal, gradients(wrong, "dense"), gradients(torch.hypot, "dense")))
    assert [g is None for g in gradients(torch.hypot, "each")] == [False, False]
    assert [g is None for g in gradients(wrong, "each")] == [False, True]


def test_an_op_of_one_argument_has_no_gradient_of_each() -> None:
    assert "no other argument" in gradients_of(squared, "each").skipped


def test_an_op_without_a_gradient_is_not_judged() -> None:
    result = judge(torch.sign, case=case_of(dtype="int64"), context=contexts.of("backward"))
    assert "no result needs a gradient" in result.skipped


@pytest.mark.parametrize("context", ["second_device", "stream", "second_stream"])
def test_a_backend_without_an_accelerator_lacks_streams_and_devices(context: str) -> None:
    if torch.accelerator.current_accelerator() is None:
        assert contexts.of(context).lacks(Capabilities(Device(), "hand"))


def dtype_under(policy: str, *dtypes: torch.dtype, **kwargs: object) -> torch.dtype:
    """Return the dtype of a result on CPU under autocast to bfloat16, for arguments of these dtypes."""
    seen: list[torch.Tensor] = []

    def op(*args: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
        seen.extend(args)
        return args[0].to(dtype or args[0].dtype)

    arguments = [torch.ones(2, dtype=dtype) for dtype in dtypes]
    result = Autocast.call(op, CPU, How("bfloat16", policy, torch.no_grad), arguments, kwargs)
    assert isinstance(result, torch.Tensor)
    return result.dtype


def test_autocast_casts_by_the_policy_of_the_overload() -> None:
    assert dtype_under("lower_precision_fp", torch.float32) == torch.bfloat16
    assert dtype_under("lower_precision_fp", torch.float64) == torch.float64
    assert dtype_under("lower_precision_fp", torch.int64) == torch.int64
    assert dtype_under("fp32", torch.float16) == torch.float32
    assert dtype_under("fp32_set_opt_dtype", torch.float16) == torch.float32
    assert dtype_under("fp32_set_opt_dtype", torch.float16, dtype=torch.float64) == torch.float64
    assert dtype_under("promote", torch.bfloat16, torch.float32) == torch.float32
    assert dtype_under("promote", torch.bfloat16, torch.bfloat16) == torch.bfloat16


@pytest.mark.parametrize("registered", [False, True])
def test_an_op_that_autocast_leaves_alone_fails_only_if_the_backend_lists_it(
    registered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_versions, "has_own_kernel", lambda name, key: registered and key == "AutocastCPU")
    found = judge(plus_one, case=case_of("autocast"), context=Autocast())
    assert bool(found.skipped) is not registered
    assert [m.check for m in found.mismatches] == ([Check.DTYPE] if registered else [])


def test_a_backend_offers_the_autocast_of_the_ops_that_it_registers() -> None:
    backend = Capabilities(Device(), "hand")
    assert Autocast().leaves_out("mm", backend) == ""
    assert Autocast().leaves_out("relu", backend)


def test_the_policies_are_those_of_the_header() -> None:
    found = torch_versions.autocast_policies()
    some = {"mm": "lower_precision_fp", "exp": "fp32", "sum.dim_IntList": "fp32_set_opt_dtype", "addcmul": "promote"}
    assert {name: found.get(name) for name in some} == some
    assert "add.Tensor" not in found
