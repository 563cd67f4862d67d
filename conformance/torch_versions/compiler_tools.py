"""Torch's tools for errors of its compiler, under their private names: the bisection and the minifier."""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

Compiler = Callable[..., Any]
#: Exceptions that are no errors: a backend raises them to make Dynamo trace again or skip a function.
_NO_ERRORS = frozenset({"RestartAnalysis", "TensorifyScalarRestartAnalysis", "SkipFrame", "SkipCodeRecursiveException"})
_NOTES = "call_counter_debug_info"


def import_compiler() -> None:
    """Import what ``torch.compile`` imports at its first use, without asking backends for code generators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of torch's own modules
        import torch._dynamo
        import torch._inductor.compile_fx
        import torch._inductor.compiler_bisector  # noqa: F401


def change_backends(change: Callable[[Compiler, str], Compiler]) -> None:
    """From now on, replace every backend of ``torch.compile`` in this process by ``change(backend, name)``."""
    from torch._dynamo.repro import after_dynamo

    was = after_dynamo.wrap_backend_debug

    def wrap(unconfigured_compiler_fn: Compiler, compiler_name: str | None) -> Any:
        return was(change(unconfigured_compiler_fn, compiler_name or ""), compiler_name)

    after_dynamo.wrap_backend_debug = wrap


def backend_named(name: str) -> Compiler:
    """Return a registered backend of ``torch.compile``."""
    from torch._dynamo.backends.registry import lookup_backend

    found: Compiler = lookup_backend(name)
    return found


def is_error(raised: BaseException) -> bool:
    """Return whether an exception of a backend is an error, and not a request to Dynamo."""
    return not any(kind.__name__ in _NO_ERRORS for kind in type(raised).__mro__)


def draws_alike(backend_name: str) -> bool:
    """Return whether code of this backend draws the same random numbers as eager code from the same state."""
    from torch._inductor import config

    return backend_name != "inductor" or bool(config.fallback_random)


def keep_generated_code(found: list[str]) -> None:
    """From now on, append the source of each wrapper that Inductor generates in this process to ``found``."""
    from torch._inductor.graph import GraphLowering

    GraphLowering.save_output_code = found.append


def compile_command() -> str:
    """Return Inductor's command to compile C++ for this processor, without paths and libraries; "" if there is none."""
    from torch._inductor import cpp_builder, cpu_vec_isa

    try:
        options = cpp_builder.CppTorchDeviceOptions(vec_isa=cpu_vec_isa.pick_vec_isa(), device_type="cpu")
        line = cpp_builder.CppBuilder(name="kernel", sources="kernel.cpp", BuildOption=options).get_command_line()
    except Exception:  # noqa: BLE001  # no compiler
        return ""
    return " ".join(word for word in line.split() if not word.startswith(("-I", "-L", "-l", "-Wl,")))


def vector_instructions() -> str:
    """Return the vector instructions for which Inductor generates code, "" if there are none."""
    from torch._inductor import cpu_vec_isa

    return str(cpu_vec_isa.pick_vec_isa() or "")


def text_of(graph: torch.fx.GraphModule) -> str:
    """Return the source of a class ``Repro`` that is the graph. Raises ValueError if the graph cannot be source."""
    from torch._dynamo.debug_utils import NNModuleToString

    if any(b.numel() > 64 for b in graph.buffers()) or list(graph.parameters()):
        raise ValueError("the graph holds tensors of its own")
    if not NNModuleToString.can_convert_to_string(graph):
        raise ValueError("the graph calls modules that have no constructor as text")
    return str(NNModuleToString.convert(graph))


def minify(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    fails: Callable[[torch.fx.GraphModule, Sequence[Any]], bool],
    keep: Callable[[torch.fx.GraphModule, Sequence[Any]], None],
) -> None:
    """Run torch's minifier, which calls ``keep`` with each smaller graph that fails. Prints to standard output."""
    from torch._functorch.fx_minifier import minifier

    minifier(graph, list(inputs), module_fails=fails, dump_state=keep)


class Bisection:
    """torch's ``CompilerBisector`` across processes: this process bisects, and processes that call :func:`join` run."""

    def __init__(self) -> None:
        from torch._inductor import compiler_bisector

        self._module = compiler_bisector
        self._bisector = compiler_bisector.CompilerBisector

    @property
    def systems(self) -> tuple[str, ...]:
        """The backends that it tries, in order."""
        return tuple(self._module.BACKENDS)

    @property
    def directory(self) -> Path:
        """The directory that other processes pass to :func:`join`."""
        return Path(str(self._bisector.in_process_cache))

    @property
    def question(self) -> tuple[str, ...]:
        """The backend, and the parts of it that are switched off. Equal questions have equal values."""
        backend, subsystem = self._bisector.get_backend() or "", self._bisector.get_subsystem() or ""
        if not subsystem:
            return (backend,)
        state = self._bisector.get_run_state(backend, subsystem) or ""
        span = self._bisector.get_bisect_range(backend, subsystem) if state == "bisect" else ()
        return (backend, subsystem, state, *map(str, span))

    def run(self, right: Callable[[], bool]) -> tuple[str, str, int, str] | None:
        """Return backend, subsystem ("" if none), number and description of the wrong step; None if all is right.

        ``right`` is called while :attr:`directory` holds the state of the question. Raises RuntimeError if the answers
        to one question differ.
        """
        with contextlib.redirect_stdout(io.StringIO()):
            found = self._bisector.do_bisect(lambda: self._asked(right))
        if found is None:
            return None
        return found.backend, found.subsystem or "", found.bisect_number or 0, found.debug_info or ""

    def _asked(self, right: Callable[[], bool]) -> bool:
        answer = right()
        notes = self.directory / f"{_NOTES}.json"
        if notes.is_file() and hasattr(self._module, _NOTES):  # torch 2.8 keeps them in the process that tries
            getattr(self._module, _NOTES).update({int(k): v for k, v in json.loads(notes.read_text()).items()})
        return answer


def join(directory: Path) -> Callable[[], None]:
    """Make torch's compilers in this process switch off the parts that a bisection in ``directory`` requests.

    Call the returned function at the end of the process's work.
    """
    from torch._inductor import compiler_bisector

    compiler_bisector.CompilerBisector.in_process_cache = str(directory)
    compiler_bisector.CompilerBisector.bisection_enabled = True

    def leave() -> None:
        if hasattr(compiler_bisector, _NOTES):
            text = json.dumps(getattr(compiler_bisector, _NOTES))
            (directory / f"{_NOTES}.json").write_text(text, encoding="utf-8")

    return leave
