"""Contexts of transforms, modes of autograd, and copies: each finds a defect that it alone shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from conformance import contexts, torch_versions
from conformance.contexts.copied import Copied
from conformance.contexts.fake import Fake
from conformance.contexts.functionalize import Functionalize
from conformance.contexts.model import How
from conformance.contexts.vmap import Vmap
from conformance.judging.judge import CaseResult
from conformance.layouts import CONTEXTS
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge

Op = Callable[..., Any]
NEW = ("gradgrad", "jacrev", "forward_ad", "vmap", "functionalize", "fake", "no_grad", "copied")
VARIANT = {"forward_ad": "all", "vmap": "-1", "copied": "deepcopy"}

# torch scripts its formulas of tangents when it needs the first one.
pytestmark = [
    pytest.mark.forked,  # autograd starts threads
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),
]


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class WrongTangent(torch.autograd.Function):
    """x * 2, with the tangent of x * 3."""

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save nothing."""

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor) -> torch.Tensor:
        return tangents[0] * 3


def wrong_in_a_batch(x: torch.Tensor) -> torch.Tensor:
    return x * (3 if torch._C._functorch.is_batchedtensor(x) else 2)  # noqa: SLF001 - what a batching rule does


def wrong_if_functionalized(x: torch.Tensor) -> torch.Tensor:
    return x * (3 if torch._is_functional_tensor(x) else 2)  # noqa: SLF001 - what functionalization does


def predicted_in_double(x: torch.Tensor) -> torch.Tensor:
    return x.double() * 2 if type(x) is not torch.Tensor else x * 2


def wrong_without_gradients(x: torch.Tensor) -> torch.Tensor:
    return x * (2 if torch.is_grad_enabled() else 3)


WRONG: dict[str, Op] = {
    "forward_ad": WrongTangent.apply,
    "vmap": wrong_in_a_batch,
    "functionalize": wrong_if_functionalized,
    "fake": predicted_in_double,
    "no_grad": wrong_without_gradients,
}


@pytest.fixture
def _own_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report that no backend registers the op of these tests and that it is not composed. The dispatcher lacks it."""
    monkeypatch.setattr(torch_versions, "is_registered_by_backend", lambda name, key: False)
    monkeypatch.setattr(torch_versions, "is_composed", lambda name: False)


def judged(wrong: Op, context: str, variant: str | None = None) -> CaseResult:
    route = (
        Route.COMPOSITE if context in ("gradgrad", "jacrev", "forward_ad", "vmap", "functionalize") else Route.NATIVE
    )
    case = replace(case_of(), variant=VARIANT.get(context, "") if variant is None else variant)
    return judge(doubled, wrong, case, route=route, context=contexts.of(context))


@pytest.mark.parametrize("context", NEW)
@pytest.mark.usefixtures("_own_op")
def test_a_right_device_passes_under_a_context(context: str) -> None:
    found = judged(doubled, context)
    assert (found.mismatches, found.skipped) == ([], "")


@pytest.mark.parametrize("context", WRONG)
@pytest.mark.usefixtures("_own_op")
def test_a_context_finds_what_is_wrong_under_it(context: str) -> None:
    (mismatch,) = judged(WRONG[context], context).mismatches
    assert mismatch.check is (Check.CONTEXT if context == "fake" else Check.VALUE)


@pytest.mark.parametrize("context", WRONG)
def test_a_plain_call_does_not_find_it(context: str) -> None:
    assert judge(doubled, WRONG[context]).mismatches == []


@pytest.mark.usefixtures("_own_op")
def test_a_number_that_torch_reads_from_a_fake_tensor_is_not_predicted() -> None:
    def reads(x: torch.Tensor) -> torch.Tensor:
        if type(x) is not torch.Tensor:
            raise TypeError("ones(): argument 'size' must be tuple of ints, but found type 'FakeTensor' at pos 1")
        return x * 2

    def refuses(x: torch.Tensor) -> torch.Tensor:
        if type(x) is not torch.Tensor:
            raise TypeError("no such size")
        return x * 2

    assert "reads no number" in judge(doubled, reads, case_of(), context=contexts.of("fake")).skipped
    (mismatch,) = judged(refuses, "fake").mismatches
    assert "torch predicts TypeError" in str(mismatch.facts)


def test_each_of_the_contexts_is_listed() -> None:
    assert set(NEW) <= CONTEXTS.keys()


def test_grad_mode_is_another_case_than_no_grad() -> None:
    assert judged(wrong_without_gradients, "no_grad", "grad").mismatches == []


def test_a_result_that_needs_a_gradient_under_no_grad_is_found() -> None:
    def recording(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return x * 2

    (mismatch,) = judged(recording, "no_grad").mismatches
    assert "needs a gradient" in mismatch.facts["broken"]


def test_a_copy_that_loses_strides_or_sharing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        monkeypatch.setattr("copy.deepcopy", lambda given: [*given[:2], [change(v) for v in given[2]]])
        how = How("deepcopy", "", torch.no_grad)
        return Copied.call(doubled, torch.device("cpu"), how, [torch.ones(2, 3)], {})

    assert torch.equal(copied(lambda view: view)[0], torch.full((2, 3), 2.0))
    with pytest.raises(AssertionError, match="the deepcopy of a view is"):
        copied(torch.Tensor.contiguous)
    with pytest.raises(AssertionError, match="share no storage"):
        copied(lambda view: torch.ones(6)[1:].as_strided(view.size(), view.stride()))


def test_a_wrong_prediction_of_torch_itself_is_not_judged() -> None:
    def wrong_on_both(x: torch.Tensor) -> torch.Tensor:
        return x.double() if type(x) is not torch.Tensor else x

    with pytest.raises(NotImplementedError, match="wrong on CPU too: dtype of tensor 0"):
        Fake.call(wrong_on_both, torch.device("cpu:0"), How("", "", torch.no_grad), [torch.ones(2)], {})
    with pytest.raises(AssertionError, match=r"float32, and torch\.float64 is predicted"):
        Fake.call(wrong_on_both, torch.device("cpu:0"), How("", "own", torch.no_grad), [torch.ones(2)], {})


def test_the_device_of_a_result_that_torch_composes_is_not_predicted() -> None:
    def elsewhere(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if type(x) is not torch.Tensor else torch.empty_like(x, device="meta")

    def tried(facts: str, op: Op) -> Any:
        return Fake.call(op, torch.device("cpu:0"), How("", facts, torch.no_grad), [torch.ones(2)], {})

    assert tried("placed by torch", elsewhere).device.type == "meta"
    with pytest.raises(AssertionError, match="device of tensor 0 is meta, and cpu is predicted"):
        tried("own", elsewhere)
    with pytest.raises(NotImplementedError, match="dtype of tensor 0"):  # the prediction is wrong for CPU too
        tried("placed by torch", predicted_in_double)


def test_a_kernel_that_torch_composes_places_its_results() -> None:
    assert Fake().facts_of("logspace.Scalar_Tensor") == "placed by torch"
    assert Fake().facts_of("add.Tensor") == ""


def test_a_prediction_of_aliasing_and_of_written_sizes_is_compared() -> None:
    def fails(op: Op) -> bool:
        try:
            Fake.call(op, torch.device("cpu:0"), How("", "own", torch.no_grad), [torch.ones(2, 3)], {})
        except AssertionError:
            return True
        return False

    def real(x: torch.Tensor) -> bool:
        return type(x) is torch.Tensor

    assert not fails(lambda x: x.view(3, 2))
    assert fails(lambda x: x.view(3, 2) if real(x) else x.clone().view(3, 2))
    assert fails(lambda x: x.resize_(7) if real(x) else x.resize_(8))


def test_an_op_that_nothing_is_predicted_of_is_not_judged() -> None:
    with pytest.raises(NotImplementedError, match="torch predicts nothing: DynamicOutputShapeException"):
        Fake.call(torch.nonzero, torch.device("cpu:0"), How("", "", torch.no_grad), [torch.ones(2)], {})


@pytest.mark.parametrize(("context", "wrong"), [(Vmap, wrong_in_a_batch), (Functionalize, wrong_if_functionalized)])
def test_a_rule_of_torch_that_is_wrong_on_cpu_is_no_reference(context: Any, wrong: Op) -> None:
    def called(facts: str) -> Any:
        return context.call(wrong, torch.device("cpu"), How("0", facts, torch.no_grad), [torch.ones(2)], {})

    with pytest.raises(NotImplementedError, match="something else"):
        called("")
    assert called("own") is not None  # with the backend's own rule, CPU is called without it


def test_kernels_of_torch_are_not_registered_by_a_backend() -> None:
    for key in ("Meta", "FuncTorchBatched", "Functionalize", "CPU"):
        assert not torch_versions.is_registered_by_backend("add_.Tensor", key)


def test_a_decomposition_of_torch_is_not_registered_by_a_backend() -> None:
    assert torch_versions.has_own_kernel("col2im", "Meta")
    assert not torch_versions.is_registered_by_backend("col2im", "Meta")


@pytest.mark.parametrize(
    ("name", "key", "own"), [("col2im", "Meta", False), ("masked_select", "Meta", True), ("col2im", "CPU", True)]
)
def test_a_kernel_from_no_known_place_is_torchs_if_torch_decomposes_the_op(
    monkeypatch: pytest.MonkeyPatch, name: str, key: str, own: bool
) -> None:
    monkeypatch.setattr("torch._C._dispatch_dump", lambda name: f"{key}: registered at /dev/null:241 :: () -> ()")
    monkeypatch.setattr(torch_versions, "has_own_kernel", lambda name, key: True)
    assert torch_versions.is_registered_by_backend(name, key) is own


def test_an_out_argument_is_told_from_self_of_an_in_place_op() -> None:
    schemas = torch_versions.schemas()
    outs = ("add.out", "_cummax_helper", "_foreach_abs.out", "max.dim_max")
    assert all(torch_versions.has_out(str(schemas[name])) for name in outs)
    assert not any(
        torch_versions.has_out(str(schemas[name])) for name in ("add_.Tensor", "add.Tensor", "_foreach_abs_")
    )


@pytest.mark.usefixtures("_own_op")
def test_a_rule_that_is_wrong_in_a_batch_of_batches_alone_is_found() -> None:
    def wrong(x: torch.Tensor) -> torch.Tensor:
        inner = torch._C._functorch  # noqa: SLF001 - what a batching rule does
        nested = inner.is_batchedtensor(x) and inner.is_batchedtensor(inner.get_unwrapped(x))
        return x * (3 if nested else 2)

    assert judged(wrong, "vmap", "0").mismatches == []
    assert judged(doubled, "vmap", "nested").mismatches == []
    assert {m.check for m in judged(wrong, "vmap", "nested").mismatches} == {Check.VALUE}
