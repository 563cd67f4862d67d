"""A graph with its arguments as a script that needs only torch and the module of the backend."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from conformance.explain.repro import literal
from conformance.torch_versions import compiler_tools as tools
from conformance.torch_versions import storage_id
from conformance.triage.compiled.dump import Dump

MOST_VALUES = 64  # of a storage that are written out
ARGUMENTS = "arguments.pt"  # the file next to the script with larger storages

_TEMPLATE = '''"""{title}"""
from math import inf, nan
from pathlib import Path

import torch
from torch import device, tensor
{imports}
{graph}

def arguments():
{arguments}


def run(graph):
    given = arguments()
{call}


graph = Repro(){training}
expected = run(graph)
actual = run(torch.compile(graph, {options}))
torch.testing.assert_close(actual, expected, equal_nan=True)
'''
_GRADIENTS = """ends = [r for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
leaves = [a for a in given if isinstance(a, torch.Tensor) and a.requires_grad]
weights = [torch.linspace(1, 2, r.numel()).view(r.shape).to(r.device, r.dtype) for r in ends]
return torch.autograd.grad(ends, leaves, weights, allow_unused=True)"""
_RETURNED = {"result": "return results", "argument": "return results, given"}


def script(given: Dump, backend: str, title: str, subject: str, module: str, directory: Path) -> str:
    """Return the script. ``subject``: the value that differs. Its first word is "result", "argument" or "gradient".

    Large arguments are written to a file in the directory. Raises ValueError if a graph cannot be written as code.
    """
    lines, large = _arguments(given.args)
    (directory / ARGUMENTS).unlink(missing_ok=True)
    if large:
        torch.save(large, directory / ARGUMENTS)
    options = {"backend": backend} | given.options
    return _TEMPLATE.format(
        title=title.replace('"""', "'''"),
        imports="" if module == "torch" else f"import {module}\n",
        graph=tools.text_of(given.graph).strip().replace("\t", "    ") + "\n",
        arguments=textwrap.indent("\n".join(lines), "    "),
        call=textwrap.indent(_call(given.modes, subject), "    "),
        training="" if given.graph.training else ".eval()",
        options=", ".join(f"{k}={v!r}" for k, v in options.items()),
    )


def _call(modes: dict[str, Any], subject: str) -> str:
    around = [] if modes.get("grad", True) else ["torch.no_grad()"]
    around += [f"torch.autocast({kind!r}, dtype={dtype})" for kind, dtype in modes.get("autocast", {}).items()]
    call = "results = graph(*given)"
    if around:
        call = f"with {', '.join(around)}:\n    {call}"
    first = subject.partition(" ")[0]
    return f"{call}\n{_GRADIENTS if first == 'gradient' else _RETURNED.get(first, _RETURNED['result'])}"


def _arguments(args: Sequence[Any]) -> tuple[list[str], list[torch.Tensor]]:
    """Return the lines of the function, and the storages that it reads from a file."""
    lines: list[str] = []
    large: list[torch.Tensor] = []
    names: list[str] = []
    storages: dict[int, str] = {}
    for i, a in enumerate(args):
        if not isinstance(a, torch.Tensor):
            names.append(repr(a))
            continue
        key = storage_id(a)
        shared = any(isinstance(b, torch.Tensor) and storage_id(b) == key for b in args[i + 1 :])
        made = storages.get(key) or _storage(a, large)
        if shared and key not in storages:
            storages[key] = f"s{i}"
            lines.append(f"s{i} = {made}")
            made = f"s{i}"
        lines.append(f"x{i} = {made}{_view(a)}{'.requires_grad_()' if a.requires_grad else ''}")
        names.append(f"x{i}")
    if large:
        lines.insert(0, f"stored = torch.load(Path(__file__).with_name({ARGUMENTS!r}))")
    return [*lines, f"return [{', '.join(names)}]"], large


def _storage(a: torch.Tensor, large: list[torch.Tensor]) -> str:
    flat = torch.empty(0, dtype=a.dtype, device=a.device).set_(a.detach().untyped_storage()).cpu()
    where = "" if a.device.type == "cpu" else f", device={str(a.device)!r}"
    if flat.numel() > MOST_VALUES:
        large.append(flat)
        return f"stored[{len(large) - 1}]" + (f".to({str(a.device)!r})" if where else ".clone()")
    return f"torch.tensor([{', '.join(map(literal, flat.tolist()))}], dtype={a.dtype}{where})"


def _view(a: torch.Tensor) -> str:
    whole = a.untyped_storage().nbytes() // a.dtype.itemsize
    if a.dim() == 1 and a.stride() == (1,) and a.numel() == whole:
        return ""
    return f".as_strided({tuple(a.shape)}, {tuple(a.stride())}, {a.storage_offset()})"
