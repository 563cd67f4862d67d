"""Cases in which torch's own decomposition or composed kernels replace CPU's kernel as the reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.contexts.inference_mode import InferenceMode
from conformance.contexts.thread import Thread
from conformance.judging import other_strides, other_values, reference
from conformance.judging.other_strides import DECOMPOSED_STRIDES
from conformance.judging.other_values import DECOMPOSED
from conformance.judging.reference import COMPOSED
from conformance.vocabulary import Check, Route
from tests.two_sides import case_of, judge


def test_a_case_is_skipped_if_the_device_equals_the_decomposition_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_values, "decomposition_of", lambda op: lambda x, device: x + 2)
    assert judge(lambda x: x + 1, lambda x: x + 2).skipped == DECOMPOSED
    found = judge(lambda x: x + 1, lambda x: x + 3)
    assert (found.skipped, [m.check for m in found.mismatches]) == ("", [Check.VALUE])


@pytest.mark.parametrize("decomposed", [torch.Tensor.t, torch.clone])
def test_a_result_may_have_the_strides_of_the_decomposition_of_torch(
    decomposed: Callable[..., torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    def placed(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(x.shape, (1, 2)).copy_(x)

    other = placed if decomposed is torch.Tensor.t else torch.clone
    monkeypatch.setattr(other_strides, "decomposition_of", lambda op: lambda x, device: other(x))
    found = judge(torch.clone, placed)
    assert found.skipped == (DECOMPOSED_STRIDES if other is placed else "")
    wrong = judge(torch.clone, lambda x: placed(x + 1))
    assert [m.check for m in wrong.mismatches] == [Check.STRIDE]


def test_a_decomposition_that_raises_excuses_no_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(x: torch.Tensor, device: torch.device) -> torch.Tensor:
        raise RuntimeError(x.shape, device)

    monkeypatch.setattr(other_values, "decomposition_of", lambda op: refuse)
    assert [m.check for m in judge(lambda x: x + 1, lambda x: x + 2).mismatches] == [Check.VALUE]


def test_a_device_that_is_right_the_second_time_does_not_follow_the_decomposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def right_at_last(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x + (1 if len(calls) > 1 else 2)

    monkeypatch.setattr(other_values, "decomposition_of", lambda op: lambda x, device: x + 3)
    found = judge(lambda x: x + 1, right_at_last)
    assert len(calls) > 1
    assert [m.check for m in found.mismatches] == [Check.VALUE]


class TestComposed:
    """An overload served by torch's own kernels for all devices on the device, and by another kernel on CPU."""

    @staticmethod
    def found(monkeypatch: pytest.MonkeyPatch, composed: Callable[..., object], route: Route = Route.COMPOSITE) -> str:
        monkeypatch.setattr(reference, "as_composed", lambda op, device: lambda x, device: composed(x))
        return judge(lambda x: x + 1, lambda x: x.t() + 2, route=route).skipped

    def test_a_device_that_does_what_they_do_is_not_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.found(monkeypatch, lambda x: x.t() + 2) == COMPOSED

    def test_a_device_that_does_something_else_is_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.found(monkeypatch, lambda x: x.t() + 3) == ""
        assert self.found(monkeypatch, lambda x: x + 2) == ""

    def test_a_kernel_of_the_backend_has_to_do_what_cpu_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.found(monkeypatch, lambda x: x.t() + 2, Route.NATIVE) == ""

    def test_they_are_a_reference_in_a_context_in_which_cpu_makes_the_plain_call(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reference, "as_composed", lambda op, device: lambda x, device: x.t() + 2)
        case = case_of("thread")
        right = judge(lambda x: x + 1, lambda x: x.t() + 2, case, route=Route.COMPOSITE, context=Thread())
        wrong = judge(lambda x: x + 1, lambda x: x.t() + 3, case, route=Route.COMPOSITE, context=Thread())
        assert (right.skipped, right.mismatches) == (COMPOSED, [])
        assert wrong.mismatches
        other = judge(lambda x: x + 1, lambda x: x.t() + 2, case, route=Route.COMPOSITE, context=InferenceMode())
        assert other.mismatches

    def test_a_device_that_raises_their_error_is_not_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("of another dtype")

        def refuse_otherwise(x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("of another size")

        monkeypatch.setattr(reference, "as_composed", lambda op, device: lambda x, device: refuse(x))
        assert judge(torch.neg, refuse, route=Route.COMPOSITE).skipped == COMPOSED
        assert judge(torch.neg, refuse_otherwise, route=Route.COMPOSITE).mismatches

    def test_a_device_that_is_right_the_second_time_is_wrong(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[int] = []

        def right_at_last(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x + (1 if len(calls) > 1 else 2)

        monkeypatch.setattr(reference, "as_composed", lambda op, device: lambda x, device: x + 1)
        found = judge(lambda x: x + 1, right_at_last, route=Route.COMPOSITE)
        assert len(calls) > 1
        assert [m.check for m in found.mismatches] == [Check.VALUE]

    def test_a_mutation_is_wrong_whatever_they_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reference, "as_composed", lambda op, device: lambda x, device: torch.neg_(x))
        assert judge(torch.neg, torch.neg_, route=Route.COMPOSITE).mismatches
