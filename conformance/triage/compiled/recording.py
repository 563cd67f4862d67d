"""The results of the functions that a program compiles, to compare two runs of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from conformance.torch_versions.compilers import leaves_of
from conformance.triage.compiled.comparing import first_difference

LARGEST = 256 << 20  # bytes of values that are kept; of later results only shapes and dtypes are compared


class Recording:
    """The results of each call of a compiled function from code that is not compiled, in order."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, list[Any]]] = []
        self._bytes = 0

    def install(self) -> None:
        """Replace ``torch.compile``, so that the results of compiled functions are recorded."""
        compile_ = torch.compile

        @functools.wraps(compile_)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            made = compile_(*args, **kwargs)
            model = args[0] if args else kwargs.get("model")
            return made if model is None else self._watched(model, made)

        torch.compile = recorded

    def _watched(self, model: Any, made: Any) -> Any:
        name = getattr(model, "__qualname__", type(model).__name__)
        if isinstance(made, torch.nn.Module):
            made.register_forward_hook(lambda _, __, result: self._keep(name, result))
            return made
        return self._function(name, made)

    def _function(self, name: str, made: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(made)
        def called(*args: Any, **kwargs: Any) -> Any:
            result = made(*args, **kwargs)
            if not torch.compiler.is_compiling():
                self._keep(name, result)
            return result

        return called

    def _keep(self, name: str, result: Any) -> None:
        self._calls.append((name, [self._value(v) for v in leaves_of(result)]))

    def _value(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value if isinstance(value, (bool, int, float, str)) else type(value).__name__
        self._bytes += value.nbytes if value.layout == torch.strided else 0
        if self._bytes > LARGEST or value.layout != torch.strided or type(value) is not torch.Tensor:
            return f"{list(value.shape)}, {value.dtype}"
        return value.detach().cpu().clone()

    def save(self, path: Path) -> None:
        """Write the results to a file."""
        torch.save(self._calls, path)


def differs(plain: Path, compiled: Path) -> str:
    """Return the first result that differs between two recordings, "" if none does or one is missing."""
    if not plain.is_file() or not compiled.is_file():
        return ""
    one, other = (torch.load(path, weights_only=True) for path in (plain, compiled))
    for index, ((name, expected), (_, actual)) in enumerate(zip(one, other)):
        subject, found = first_difference([f"result {i}" for i in range(len(expected))], expected, actual)
        if found:
            return f"call {index} of a compiled function, {name}: {subject}: {found}"
    if len(one) != len(other):
        return f"{len(other)} calls of compiled functions, {len(one)} without torch.compile"
    return ""
