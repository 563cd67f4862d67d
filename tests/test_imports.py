"""The import rules of DESIGN.md, checked on the source: who may import what, and which names may appear where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from conformance.lanes import matrix

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "conformance"
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
        file.read_text(encoding="utf-8")
    )
    for file in sorted(PACKAGE.rglob("*.py"))
}

# Each room of DESIGN.md, from the bottom up, with the rooms that it imports. A top-level module is a room of its own.
_TABLE = {
    "support": "",
    "vocabulary": "",
    "records": "vocabulary",
    "layouts": "",
    "torch_versions": "",
    "inventory": "torch_versions vocabulary",
    "bare_device": "torch_versions",
    "ambient": "torch_versions",
    "adapters": "bare_device support",
    "backends": "adapters bare_device support torch_versions",
    "ops": "",
    "corpus": "inventory ops support torch_versions",
    "lanes": "support vocabulary",
    "models": "corpus layouts vocabulary",
    "results": "layouts models records support vocabulary",
    "device_tests": "corpus records support torch_versions vocabulary",
    "cluster": "lanes records results support vocabulary",
    "contexts": "backends inventory ops support torch_versions vocabulary",
    "scenarios": "ambient support torch_versions",
    "plan": "backends contexts corpus inventory layouts ops records scenarios support vocabulary",
    "judging": "ambient backends contexts corpus layouts ops plan records scenarios support torch_versions vocabulary",
    "explain": "backends contexts corpus inventory judging layouts ops plan records scenarios support torch_versions"
    " vocabulary",
    "running": "contexts inventory judging lanes plan records scenarios support torch_versions vocabulary",
    "perf": "backends corpus inventory lanes ops results running support torch_versions vocabulary",
    "doctor": "backends inventory running support torch_versions vocabulary",
    "calls": "backends corpus explain inventory judging layouts models ops plan running support torch_versions"
    " vocabulary",
    "hazards": "backends running support",
    "huge": "backends running support",
    "triage": "backends calls corpus explain inventory judging lanes layouts plan records running support"
    " torch_versions vocabulary",
    "aoti": "backends layouts support torch_versions triage vocabulary",
    "bisect": "explain lanes perf records results support vocabulary",
    "nightly": "explain lanes records results support vocabulary",
    "report": "bisect explain layouts perf records results support vocabulary",
    "plugin": "backends corpus explain lanes layouts models ops plan records results running support torch_versions"
    " vocabulary",
    "commands": "aoti backends bisect calls cluster corpus device_tests doctor explain hazards huge inventory lanes"
    " models nightly perf plan records report results running scenarios support torch_versions triage vocabulary",
    "cli": "commands",
}
ROOMS = {room: frozenset(may_import.split()) for room, may_import in _TABLE.items()}
EDGES = {"plugin", "commands", "cli"}
# These read, judge and print results where torch is not installed. The edges load torch only for requests that need it.
ROOMS_WITHOUT_TORCH = {
    "support", "vocabulary", "records", "layouts", "lanes", "models", "results", "cluster", "bisect", "nightly",
    "report", "cli",
}  # fmt: skip
OTHER_MODULES_WITHOUT_TORCH = {
    "corpus.model", "plan.arguments", "plan.case", "plan.cases", "plan.context_cases", "plan.layout_cases",
    "plan.other_numbers", "plan.scaled", "plan.selection", "plan.sequence_cases", "plan.tiers",
    "explain.describe",
    "explain.inventory_text",
    "running.child", "running.crash_log", "running.deaths", "running.fresh_runs", "running.host_leaks",
    "running.isolation", "running.leak_search", "running.progress", "running.protocol", "running.runner",
    "running.sanitizer_report", "running.spawned",
    "calls.program", "device_tests.kinds", "device_tests.model", "device_tests.reading",
    "triage.evidence", "triage.lanes", "triage.report", "triage.conclusions", "triage.warm", "plugin",
    "triage.compiled.model", "triage.compiled.stages", "triage.compiled.report",
    "perf.model", "perf.store", "perf.interval", "perf.diff", "perf.ranking", "perf.session", "perf.text",
    "perf.spawned",
    "aoti.model", "aoti.grid", "aoti.ends", "aoti.kernels", "aoti.progress", "aoti.text",
}  # fmt: skip
# torch documents fake tensors under the name torch._subclasses, and `contexts.fake` is copied into scripts.
MAY_NAME_TORCH_PRIVATES = (
    "inventory", "torch_versions", "torch_versions.compilers", "torch_versions.compiler_tools",
    "torch_versions.device_tests", "corpus.record",
    "explain.both_sides", "contexts.fake", "scenarios.subclasses",
)  # fmt: skip


def room_of(module: str) -> str:
    """Return the part of a module's name after the package's; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


WITHOUT_TORCH = [m for m in MODULES if room_of(m) in ROOMS_WITHOUT_TORCH]
WITHOUT_TORCH += [f"conformance.{name}" for name in sorted(OTHER_MODULES_WITHOUT_TORCH)]


def imported(module: str) -> Iterator[str]:
    """Yield every module that ``module`` imports anywhere, except for imports under ``TYPE_CHECKING``."""
    return _imported(_running_code(MODULES[module]))


def _imported(code: Iterable[ast.AST]) -> Iterator[str]:
    for node in code:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _running_code(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _running_code(node)


def imports(module: str, package: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for name in imported(module))


def rooms_imported(module: str) -> set[str]:
    """Return the other rooms that a module imports, including imports under ``TYPE_CHECKING``."""
    names = _imported(ast.walk(MODULES[module]))
    found = {room_of(name) for name in names if name.startswith("conformance.")}
    return found - {"", room_of(module)}


@pytest.mark.parametrize("module", [m for m in MODULES if room_of(m)])
def test_a_module_imports_only_rooms_that_its_room_may_import(module: str) -> None:
    assert rooms_imported(module) <= ROOMS[room_of(module)]


def test_every_arrow_of_the_table_is_an_import_of_some_module() -> None:
    arrows = {(room_of(m), to) for m in MODULES for to in rooms_imported(m)}
    assert arrows == {(room, to) for room, may_import in ROOMS.items() for to in may_import}


def test_no_room_imports_itself_by_way_of_others() -> None:
    assert set(TopologicalSorter(ROOMS).static_order()) == ROOMS.keys()  # raises CycleError, which names the rooms


def test_the_edges_are_imported_by_the_command_line_alone() -> None:
    assert {(room, edge) for room, may_import in ROOMS.items() for edge in may_import & EDGES} == {("cli", "commands")}


@pytest.mark.parametrize("module", WITHOUT_TORCH)
def test_results_can_be_read_and_judged_without_torch(module: str) -> None:
    assert not imports(module, "torch")


def test_importing_them_loads_no_torch_by_way_of_others() -> None:
    code = f"import sys, {', '.join(WITHOUT_TORCH)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("conformance.plugin")])
def test_pytest_is_imported_by_the_plugin_alone(module: str) -> None:
    assert not imports(module, "pytest")
    assert not imports(module, "_pytest")


def test_the_suite_and_the_backends_do_not_know_each_other() -> None:
    for found in matrix.load_all(ROOT / "matrices"):
        assert not [m for m in MODULES if imports(m, found.module)]
        for file in (ROOT / found.project).rglob("python/**/*.py"):
            assert not re.search(r"^\s*(from|import) conformance\b", file.read_text(encoding="utf-8"), re.MULTILINE), (
                file
            )


# The adapters that ship with the suite are those of public backends, and name them.
NAME_NO_BACKEND = [file for file in sorted(PACKAGE.rglob("*.py")) if file.parent.name != "adapters"]


@pytest.mark.parametrize("file", NAME_NO_BACKEND, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_backend_is_named_in_the_suite(file: Path) -> None:
    names = "|".join({m.backend for m in matrix.load_all(ROOT / "matrices")} | {"npu"})
    found = re.search(rf"\b({names})\b", file.read_text(encoding="utf-8"), re.IGNORECASE)
    assert not found, f"{file}: names {found[0]!r}"


@pytest.mark.parametrize(
    "module", [m for m in MODULES if m.removeprefix("conformance.") not in MAY_NAME_TORCH_PRIVATES]
)
def test_torch_private_names_are_used_in_the_modules_that_wrap_them_alone(module: str) -> None:
    private = [name for name in imported(module) if re.match(r"torch\..*?\b_[a-z]\w*|torch\._", name)]
    private += [text for node in ast.walk(MODULES[module]) if (text := _private_attribute(node))]
    assert private == []


def _private_attribute(node: ast.AST) -> str:
    """Return a private attribute of torch such as ``torch._C``, as written; empty for any other node."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    return text if re.fullmatch(r"torch(\.\w+)*\._[A-Za-z]\w*", text) else ""


def test_every_module_says_in_its_first_line_what_it_knows() -> None:
    silent = [m for m, tree in MODULES.items() if not (ast.get_docstring(tree) or "").strip()]
    assert silent == []
