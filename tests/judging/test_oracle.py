"""The CPU reference: the outcome of a call, the float64 reference, and whether repeated calls agree."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
import torch

from conformance.corpus.model import DtypeArg
from conformance.judging import altered, oracle
from conformance.judging.oracle import CallOutcome
from conformance.judging.twins import CPU, Twins
from conformance.plan.cases import cases
from conformance.vocabulary import CellId, Route
from tests.samples import sample, slot
from tests.two_sides import behind, case_of, value_of


def call(op: Any, seed: int | None = None) -> CallOutcome:
    return oracle.call(lambda x, where: op(x), Twins(value_of).side(case_of(), CPU), seed)


def test_nested_results_become_a_flat_list_with_names() -> None:
    found = call(lambda x: (x, [x + 1, 3], None))
    assert [name for name, _ in found.leaves] == ["result[0]", "result[1][0]", "result[1][1]", "result[2]"]
    assert found.raw_ns > 0


def test_an_error_of_a_call_is_kept_without_its_traceback() -> None:
    found = call(lambda x: x.reshape(7))
    assert isinstance(found.error, RuntimeError)
    assert found.error.__traceback__ is None
    assert found.leaves == []


def test_errors_that_led_to_that_of_a_call_are_kept_without_their_tracebacks() -> None:
    def second(x: torch.Tensor) -> torch.Tensor:
        try:
            return x.reshape(7)
        except RuntimeError as e:
            raise TypeError("second") from e

    def third(x: torch.Tensor) -> torch.Tensor:
        try:
            return second(x)
        except TypeError:
            raise IndexError("third")  # noqa: B904 - an error while another is handled

    last = call(third).error
    assert isinstance(last, IndexError)
    middle = last.__context__
    assert isinstance(middle, TypeError)
    first = middle.__cause__
    assert isinstance(first, RuntimeError)
    assert [e.__traceback__ for e in (first, middle, last)] == [None] * 3


def test_a_call_ends_with_the_synchronization_of_the_device() -> None:
    waits: list[int] = []
    side = Twins(value_of).side(case_of(), CPU)
    oracle.call(lambda x, where: waits.append(1), side, synchronize=lambda: waits.append(2))
    assert waits == [1, 2]


def test_a_seed_makes_draws_repeatable() -> None:
    draws = [call(torch.rand_like, seed).leaves[0][1] for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_seed_for_cpu_does_not_seed_the_generators_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch, "manual_seed", seeded.append)  # seeds every device
    assert torch.equal(call(torch.rand_like, 1).leaves[0][1], call(torch.rand_like, 1).leaves[0][1])
    assert seeded == []
    oracle.call(lambda x, where: x, Twins(value_of).side(case_of(), torch.device("cpu:0")), 7)
    assert seeded == [7]


def test_a_seed_for_a_device_seeds_its_generators_and_that_of_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    with torch.random.fork_rng(devices=()):
        oracle.seed_generators(1234, torch.device("cuda:0"))
        assert torch.initial_seed() == 1234
    assert seeded == [1234]


def test_the_float64_reference_starts_from_the_same_numbers() -> None:
    twins = Twins(value_of)
    found = oracle.float64(case_of(), twins, lambda x, where: x / 3)
    assert found is not None
    assert torch.equal(found.leaves[0][1], value_of(case_of().sample.tensors[0], "float32").double() / 3)


def test_a_dtype_among_the_arguments_is_widened_too() -> None:
    one = sample("hand", slot(0, "self", (2, 3)), DtypeArg("float16"), dtypes=("int64",))
    case = cases(CellId("misc", "hand", "int64", "contiguous"), [one])[0]
    found = oracle.float64(case, Twins(value_of), lambda x, dtype: x.to(dtype))
    assert found is not None
    assert found.leaves[0][1].dtype is torch.float64


def test_integers_and_raising_calls_have_no_float64_reference() -> None:
    assert oracle.float64(case_of(dtype="float32"), Twins(value_of), lambda x, where: x.reshape(7)) is None
    integers = replace(case_of(), cell=replace(case_of().cell, dtype="int64"))
    assert oracle.float64(integers, Twins(value_of), lambda x, where: x) is None


def test_integers_that_torch_promotes_have_a_float64_reference() -> None:
    found = oracle.float64(case_of(dtype="int32"), Twins(value_of), lambda x, where: torch.log10(x))
    assert found is not None
    assert torch.equal(found.leaves[0][1], value_of(case_of().sample.tensors[0], "float64").log10())
    assert torch.get_default_dtype() is torch.float32


def test_a_reference_with_equal_repetitions_agrees_with_itself() -> None:
    assert oracle.agrees_with_itself(call(torch.neg), lambda: call(torch.neg))


@pytest.mark.parametrize("kind", ["values", "message", "error"])
def test_a_reference_with_different_repetitions_does_not_agree_with_itself(kind: str) -> None:
    calls = count()

    def unsound(x: torch.Tensor) -> torch.Tensor:
        n = next(calls)
        if kind == "values" or (kind == "error" and n == 0):
            return x + n
        raise RuntimeError(f"index {n} is out of range")

    assert not oracle.agrees_with_itself(call(unsound), lambda: call(unsound))


def surrounded(op: Any) -> Any:
    return lambda value: oracle.call(lambda x, where: op(x), altered.surrounded(Twins(value_of), case_of(), value))


def test_a_reference_that_reads_behind_its_arguments_is_detected() -> None:
    def beyond(x: torch.Tensor) -> torch.Tensor:
        return x + behind(x)

    def refusing(x: torch.Tensor) -> torch.Tensor:
        raise IndexError(f"no element {behind(x)}")

    def refusing_one(x: torch.Tensor) -> torch.Tensor:
        return refusing(x) if behind(x) else x + 1

    def hiding(x: torch.Tensor) -> torch.Tensor:
        return x + 0 * behind(x)

    for op in (beyond, refusing, refusing_one, hiding):
        assert oracle.reads_behind_its_arguments(surrounded(op)), op
    assert not oracle.reads_behind_its_arguments(surrounded(torch.neg))


def test_a_refused_resize_is_not_taken_for_a_read_behind_an_argument() -> None:
    assert not oracle.reads_behind_its_arguments(surrounded(lambda x: x.resize_(100)))


def test_only_some_errors_mean_that_cpu_lacks_a_kernel() -> None:
    assert oracle.cannot_serve(NotImplementedError("x"))
    assert oracle.cannot_serve(RuntimeError("\"neg\" not implemented for 'Bool'"))
    assert oracle.cannot_serve(RuntimeError("could not create a primitive descriptor for a matmul primitive"))
    assert oracle.cannot_serve(RuntimeError("could not construct a memory descriptor using strides"))
    assert not oracle.cannot_serve(TypeError("not implemented for this type"))
    assert not oracle.cannot_serve(RuntimeError("shapes do not match"))
    assert not oracle.cannot_serve(None)


def test_not_implemented_from_a_native_kernel_is_no_missing_kernel() -> None:
    assert oracle.lacks_kernel(NotImplementedError("no such op"), Route.UNSUPPORTED)
    assert oracle.lacks_kernel(NotImplementedError("Could not run 'aten::x'"), Route.NATIVE)
    assert not oracle.lacks_kernel(NotImplementedError("later"), Route.NATIVE)
    assert not oracle.lacks_kernel(RuntimeError("x"), Route.UNSUPPORTED)


def test_where_cpu_raises_only_a_dispatcher_error_means_a_missing_kernel() -> None:
    refusal, reference = NotImplementedError("not for such sizes"), RuntimeError("bad size")
    assert oracle.lacks_kernel(refusal, Route.FALLBACK)
    assert not oracle.lacks_kernel(refusal, Route.FALLBACK, reference)
    assert oracle.lacks_kernel(NotImplementedError("Could not run 'aten::x'"), Route.FALLBACK, reference)


def test_where_cpu_raises_a_kernel_that_each_backend_has_to_bring_may_be_missing() -> None:
    x = torch.ones(1, 1, 3)
    arguments = (x, x, None, [1], [0], [1], False, [0], 1)
    with pytest.raises(NotImplementedError, match="to override") as refusal:  # CPU uses other kernels
        torch.ops.aten.convolution_overrideable(*arguments)
    assert oracle.lacks_kernel(refusal.value, Route.COMPOSITE, RuntimeError("input and bias have other dtypes"))


FUNCTIONALIZATION = (
    "Found a custom (non-ATen) operator whose output has alias annotations: aten::{}. We only support functionalizing "
    "operators whose outputs do not have alias annotations"
)


def test_what_torch_cannot_functionalize_is_no_defect_of_a_device_that_functionalizes() -> None:
    for schema in (
        "_sobol_engine_ff_(Tensor(a!) self, int n, ...)",
        "_slow_conv2d_backward.grad_input(Tensor self, ...)",
    ):
        refusal = RuntimeError(FUNCTIONALIZATION.format(schema))
        assert oracle.lacks_kernel(refusal, Route.NATIVE)
        assert oracle.lacks_kernel(refusal, Route.FALLBACK, RuntimeError("bad size"))


def test_a_device_that_cannot_functionalize_what_torch_can_is_at_fault() -> None:
    refusal = RuntimeError(FUNCTIONALIZATION.format("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"))
    assert not oracle.lacks_kernel(refusal, Route.NATIVE)
    assert not oracle.lacks_kernel(RuntimeError("Found a custom kernel"), Route.NATIVE)
