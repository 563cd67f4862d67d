"""Programs under ``torch.compile``, by backend, static and dynamic, against the same program run eagerly on CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import nn

from conformance.scenarios.model import NotOffered, Results, first_line, scenario, tensors_of
from conformance.support.compiled_code import compiler_error
from conformance.support.machine import cxx_compiler
from conformance.torch_versions.compilers import inductor_knows

T = TypeVar("T")
Inputs = tuple[torch.Tensor, ...]
#: A function of tensors or a module, and a function that returns its arguments for a size. The function or module may
#: write to its arguments and return nested tuples.
Made = tuple[Callable[..., Any], Callable[[int], Inputs]]
#: By name: the backend of torch.compile ("" for a program that is not compiled), and whether sizes are dynamic.
MODES: dict[str, tuple[str, bool]] = {
    "not compiled": ("", False),
    "eager": ("eager", False),
    "aot_eager": ("aot_eager", False),
    "inductor": ("inductor", False),
    "inductor, dynamic": ("inductor", True),
}
#: The sizes that a program is called with: one that fills a vector of any dtype and leaves a tail, and another one.
SIZES = (35, 18)


def program(make: Callable[[], Made]) -> Callable[[str], Results]:
    """Register a scenario that runs a program in each of ``MODES``. The program is made on CPU, from one seed."""

    def run(device: str) -> Results:
        found: Results = {}
        plain = _outputs(make, "cpu", "", dynamic=False) if device == "cpu" else {}
        for mode, (backend, dynamic) in MODES.items():
            for name, tensor in (plain or _tried(make, device, mode, backend, dynamic)).items():
                found[f"{mode}: {name}"] = tensor
        return found

    run.__name__, run.__doc__, run.__module__ = make.__name__, make.__doc__, make.__module__
    return scenario(slow=True, compiles=True)(run)


def by_inductor(what: str, device: str, run: Callable[[], T]) -> T | NotOffered:
    """Return the result of ``run``, which calls ``torch.compile`` for a device.

    Returns NotOffered if Inductor does not know the device, or cannot compile anything on this machine. Raises
    RuntimeError if ``run`` fails for another reason. Its message names ``what`` was compiled, the compiler and the
    compiler's first error.
    """
    kind = torch.device(device).type
    if not inductor_knows(kind):
        return NotOffered(f"Inductor has no backend registered for {kind}")
    torch.compiler.reset()
    try:
        return run()
    except Exception as e:
        if lacking := inductor_lacks():
            return NotOffered(lacking)
        line = compiler_error(e) or f"{type(e).__name__}: {first_line(e)}"
        raise RuntimeError(f"{what} compiled for {kind}: {line} ({cxx_compiler()})") from e
    finally:
        torch.compiler.reset()


@cache
def inductor_lacks() -> str:
    """Return why Inductor cannot compile even a small program for CPU, such as a missing module; "" if it can.

    Call this only after a failed compilation: the answer takes seconds.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's first imports may warn: no lack, even if warnings are errors
            torch.compile(lambda x: x.sin() + 1, backend="inductor")(torch.ones(40))
    except Exception as e:  # noqa: BLE001  # a compiler may raise anything
        return f"Inductor compiles nothing for CPU here: {' '.join(str(e).split(chr(10))[:2])}"
    return ""


def _tried(make: Callable[[], Made], device: str, mode: str, backend: str, dynamic: bool) -> Results:
    """Return the outputs in one mode. If the program raises, raise RuntimeError that names the mode."""
    kind = torch.device(device).type
    if backend == "inductor" and not inductor_knows(kind):
        missing = NotOffered(f"Inductor has no backend registered for {kind}")
        return dict.fromkeys(_outputs(make, "cpu", "", dynamic=False), missing)
    try:
        found = _outputs(make, device, backend, dynamic)
    except Exception as e:
        if backend == "inductor" and (lacking := inductor_lacks()):
            return dict.fromkeys(_outputs(make, "cpu", "", dynamic=False), NotOffered(lacking))
        line = compiler_error(e)
        said = (
            f"the C++ compiler refuses the generated code: {line}" if line else f"{type(e).__name__}: {first_line(e)}"
        )
        raise RuntimeError(f"{mode}: {said}") from e
    return _excused(make, found, backend, dynamic) if backend else found


def _excused(make: Callable[[], Made], found: Results, backend: str, dynamic: bool) -> Results:
    """Return the outputs, with NotOffered in place of each that torch compiles to the same wrong result for CPU.

    A result is wrong if its values or its strides are.
    """
    eager = _outputs(make, "cpu", "", dynamic=False)
    if all(_alike(found[name], eager[name]) for name in found):
        return found
    on_cpu = _outputs(make, "cpu", backend, dynamic)
    wrong = {name for name in found if not _alike(on_cpu[name], eager[name]) and _alike(found[name], on_cpu[name])}
    reason = NotOffered(f"{backend} compiles the program to the same wrong result for CPU")
    return {name: reason if name in wrong else output for name, output in found.items()}


def _alike(one: torch.Tensor | NotOffered, other: torch.Tensor | NotOffered) -> bool:
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    same_place = (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
    return bool(same_place and torch.allclose(one.cpu(), other, 1e-4, 1e-5, equal_nan=True))


def _outputs(make: Callable[[], Made], device: str, backend: str, dynamic: bool) -> Results:
    """Return results, arguments, buffers, and the gradients of arguments and parameters, for each size."""
    torch.manual_seed(0)
    body, inputs = make()
    body = body.to(device) if isinstance(body, nn.Module) else body
    if backend:
        torch.compiler.reset()
        called = torch.compile(body, backend=backend, fullgraph=True, dynamic=dynamic)
    else:
        called = body
    found: Results = {}
    for size in SIZES:
        torch.manual_seed(size)
        given = [_leaf(x, device) for x in inputs(size)]
        results = tensors_of(called(*given))
        for name, tensor in _named(body, given, results):
            found[f"{name}, size {size}"] = tensor.detach()
    torch.compiler.reset()
    return found


def _leaf(x: torch.Tensor, device: str) -> torch.Tensor:
    """Return a CPU tensor on the device: as a leaf if it requires gradients, else with its strides and offset."""
    if x.requires_grad:
        return x.detach().to(device).requires_grad_()
    if x.storage_offset() == 0 and x.is_contiguous():
        return x.to(device)
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(device)
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def _named(body: Any, given: list[torch.Tensor], results: list[torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    """Return all tensors to compare, after the backward pass of a loss that weighs each result element differently."""
    loss = [(r.float() * torch.linspace(1, 2, r.numel()).view(r.shape).to(r.device)).sum() for r in results]
    if any(r.requires_grad for r in results):
        torch.stack(loss).sum().backward()
    named = [(f"result {i}", r) for i, r in enumerate(results)]
    named += [(f"argument {i}", x) for i, x in enumerate(given)]
    named += [(f"gradient of argument {i}", x.grad) for i, x in enumerate(given) if x.grad is not None]
    if isinstance(body, nn.Module):
        named += [(f"gradient of {name}", p.grad) for name, p in body.named_parameters() if p.grad is not None]
        named += [(name, buffer.clone()) for name, buffer in body.named_buffers()]
        body.zero_grad()
    return named


def rows(n: int) -> Inputs:
    """Return a matrix."""
    return (torch.randn(n, 12),)


def leaves(n: int) -> Inputs:
    """Return a matrix that needs a gradient."""
    return (torch.randn(n, 12, requires_grad=True),)


def heads(n: int) -> Inputs:
    """Return queries, keys and values of three heads."""
    return tuple(torch.randn(2, 3, n, 8) for _ in range(3))


def images(n: int) -> Inputs:
    """Return two images."""
    return (torch.randn(2, 3, n, 11),)
