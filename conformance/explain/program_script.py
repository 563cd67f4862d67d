"""A standalone script of a scenario, which needs only torch and the backend."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
from collections.abc import Sequence
from types import ModuleType

from conformance.backends import Capabilities
from conformance.explain import both_runs
from conformance.judging import programs
from conformance.scenarios import model
from conformance.scenarios.model import Scenario

_OWN = "conformance"
_WHOLE = (model.__package__, "conformance.support")  # packages whose modules are copied whole
# The number of terms of the largest sum that rounds in a scenario's result.
_TERMS = 4096


def script(scenario: Scenario, backend: Capabilities, case: str, runs: int = 1, without: Sequence[str] = ()) -> str:
    """Return the script's text. ``runs``: number of processes that run it, until one differs, if the backend can fork.

    The script contains the scenario's module, and the code of the suite that this module uses. ``without``: the
    primitives that the bring-up gate found broken. The program leaves out the lines that need them, as in the run.
    """
    runs = runs if backend.isolation == "fork" else 1
    module = importlib.import_module(scenario.run.__module__)
    devices = programs.devices(scenario, backend)
    settings = scenario.exact, _bound(), runs, programs.runs_in_thread(scenario)
    arguments = f"{scenario.run.__name__}, {devices!r}, {', '.join(map(repr, settings))}"
    parts = [
        f'"""{case}\n\nExits with 1 and prints the difference if the device differs from CPU, else exits with 0.\n"""',
        "from __future__ import annotations",
        # torch first: a backend that torch loads by itself cannot be imported before it
        "" if backend.module == "torch" else f"import torch\n\nimport {backend.module}  # loads the device",
        _code(model), *_helpers(module), _code(module), _code(both_runs), _told(module, backend),
        _left_out(backend, without),
        f'if __name__ == "__main__":\n    main({arguments})',
    ]  # fmt: skip
    return "\n\n".join(filter(None, parts)) + "\n"


def _told(module: ModuleType, backend: Capabilities) -> str:
    """Return the assignment of the adapter's ``hidden_by``, if the module uses ``HIDDEN_BY``; else ""."""
    return f"HIDDEN_BY[{backend.kind!r}] = {backend.hidden_by!r}" if hasattr(module, "HIDDEN_BY") else ""


def _left_out(backend: Capabilities, without: Sequence[str]) -> str:
    """Return the assignment of the broken primitives, "" if there are none."""
    if not without:
        return ""
    names = ", ".join(map(repr, sorted(without)))
    why = "# Found broken by the bring-up gate, so the program leaves out the lines that need one of these."
    return f"{why}\nBROKEN_PRIMITIVES[{backend.kind!r}] = frozenset({{{names}}})"


def _bound() -> float:
    return programs.CLOSENESS_ULPS * 2.0**-23 * math.sqrt(_TERMS)


def _code(module: ModuleType) -> str:
    """Return a module's text without its docstring, its imports of the suite, and its imports of ``__future__``."""
    text = inspect.getsource(module)
    lines = text.splitlines()
    for node in ast.parse(text).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if docstring or (isinstance(node, ast.ImportFrom) and _is_left_out(node)):
            lines[node.lineno - 1 : node.end_lineno] = [None] * ((node.end_lineno or 0) - node.lineno + 1)  # type: ignore[list-item]
    return "\n".join(line for line in lines if line is not None).strip()


def _is_left_out(node: ast.ImportFrom) -> bool:
    return node.module == "__future__" or (node.module or "").partition(".")[0] == _OWN


def _helpers(module: ModuleType) -> dict[str, None]:
    """Return the texts of the module's imports from the suite, each once, after the texts that they need themselves.

    A text is a single function, but the whole module for modules of scenarios and of small helpers.
    """
    found: dict[str, None] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and node.module and _is_left_out(node) and node.module != "__future__":
            home = importlib.import_module(node.module)
            if home is not model and home.__package__ in _WHOLE:
                found |= {**_helpers(home), _code(home): None}
                continue
            found |= {inspect.getsource(getattr(home, name.name)): None for name in node.names if home is not model}
    return found
