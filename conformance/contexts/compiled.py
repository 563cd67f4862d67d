"""Calls under ``torch.compile``: a graph of one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from conformance import ops, torch_versions
from conformance.backends import Capabilities
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import alike, on_host, tensors_of, with_tensors
from conformance.inventory import Overload
from conformance.ops.family import OpFacts
from conformance.support.compiled_code import compiler_error, use_own_cache
from conformance.torch_versions import compilers
from conformance.vocabulary import Check, Route


class NotCompiled(NotImplementedError):
    """Raised for a call that torch compiles for no device, not for this device, or for CPU as wrongly."""


def ended(
    call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, list[Any], Exception | None]:
    """Return the result of a call; the result and what the arguments hold then, on CPU; and the error."""
    try:
        result = call(*args, **kwargs)
    except Exception as e:  # noqa: BLE001 - compared
        return None, [], e.with_traceback(None)
    return result, on_host([result, *args, *kwargs.values()], {})[0], None


def compiled(op: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """Return the op as a graph of its own, compiled anew."""

    def one_op(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    torch.compiler.reset()
    graph: Callable[..., Any] = torch.compile(one_op, backend=backend, fullgraph=True, dynamic=False)
    return graph


def has_strides_of_cpu(
    op: Callable[..., Any], device: torch.device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a plain call on the device does as on CPU, strides included. The arguments are CPU's."""
    copies = on_host(args, kwargs)
    there = [with_tensors(value, lambda t: t.to(device)) for value in args]
    named = {name: with_tensors(value, lambda t: t.to(device)) for name, value in kwargs.items()}
    return alike(ended(op, *copies)[1], ended(op, there, named)[1])


class Compiled(Context):
    """The device's call is compiled by Dynamo and AOTAutograd, which change graphs and write no kernels.

    CPU's call is a plain one. If torch compiles a call wrongly for CPU in the same way, this is torch's own error,
    and no defect of the backend.
    """

    name = "compiled"
    per_family = 12
    helpers = (
        tensors_of,
        with_tensors,
        on_host,
        alike,
        compiler_error,
        NotCompiled,
        ended,
        compiled,
        has_strides_of_cpu,
    )
    unchecked = frozenset({Check.VERSION})

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op, compiled unless on CPU. The variant begins with the backend of ``torch.compile``.

        Raises NotCompiled if torch cannot compile the call for CPU either, or to the same wrong code there;
        AssertionError if the C++ compiler refuses the code for the device.
        """
        if device == torch.device("cpu"):
            return op(*args, **kwargs)

        backend = how.variant.partition("+")[0]
        mine, theirs, others = (on_host(args, kwargs) for _ in range(3))
        result, found, refused = ended(compiled(op, backend), args, kwargs)
        _, plain, raised = ended(op, *mine)
        if raised is None and (refused or not alike(plain, found)):
            _, on_cpu, same = ended(compiled(op, backend), *theirs)
            if refused and same:
                raise NotCompiled(f"torch compiles the call for CPU neither: {same}")
            if not refused and not same and alike(on_cpu, found):
                raise NotCompiled("torch compiles the call for CPU to code with the same results")
            predicted = how.facts != "own" and str(refused).startswith("expected size ")
            if predicted and has_strides_of_cpu(op, device, *others):
                raise NotCompiled("torch compiles by a wrong prediction of strides: the device has CPU's")
        torch.compiler.reset()
        if refused and compiler_error(refused):
            raise AssertionError(f"the C++ compiler refuses the generated code: {compiler_error(refused)}")
        if refused:
            raise refused
        return result

    def load(self) -> None:
        use_own_cache()
        compilers.load_compiler()

    def facts_of(self, overload: str) -> str:
        """Return "own" if the backend registered the kernel for Meta, so that it makes the prediction, else ""."""
        return "own" if torch_versions.is_registered_by_backend(overload, "Meta") else ""

    def applies(self, overload: Overload) -> bool:
        """Return whether an overload draws no random numbers and needs no ``out``, which a graph cannot return."""
        return not torch_versions.has_out(overload.schema) and ops.facts(overload.name).random is None

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether torch does not compile the call on any device, or compiles it wrongly."""
        return isinstance(error, NotCompiled)

    def route(self, route: Route) -> Route:  # other overloads are called
        return Route.COMPOSITE

    def facts(self, facts: OpFacts, overload: str) -> OpFacts:
        return replace(facts, may_alias=True)


class Inductor(Compiled):
    """Inductor compiles the device's call to kernels, with contiguous arguments and with arguments at an offset."""

    name = "inductor"
    per_family = 3

    def on_device(self, op: Op, overload: str, variant: str, backend: Capabilities) -> Op:
        """Return the compiled op; one that raises NotCompiled if Inductor does not know the device."""
        if compilers.inductor_knows(backend.kind):
            return super().on_device(op, overload, variant, backend)

        def unknown(*args: Any, **kwargs: Any) -> Any:
            raise NotCompiled(f"torch compiles nothing: Inductor has no backend registered for {backend.kind}")

        return unknown
