"""The import rules of DESIGN.md, held against the source: who may import what, and which names may appear where."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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

# Read, judged and printed where torch is not installed; the two edges load it only when asked to.
WITHOUT_TORCH = (
    "vocabulary", "near", "toml_table", "layouts", "cases", "summary", "expectations", "exit_codes", "matrix",
    "torch_wheel", "inventory_text", "ledger", "child", "heap", "usage", "options", "corpus.model", "cli", "plugin",
    "bisect.search", "bisect.session", "bisect.report", "bisect.probes", "bisect.ends", "bisect.places",
    "store.manifest", "store.journal", "store.parquet", "store.runs", "store.compare", "store.views", "diff", "resume",
    "nights", "describe", "report.arguments", "report.cells", "report.choice", "report.failures",
    "report.gather", "report.model", "report.site", "report.text",
    "progress", "serving", "isolation",
    "inquest", "spawned", "shards", "merge", "closing", "jobs", "markup", "junit", "job_page",
    "nightly.families", "nightly.plan", "nightly.relay", "nightly.searches", "nightly.tonight",
    "triage.ddmin", "triage.evidence", "triage.lanes", "triage.report", "triage.verdict", "triage.warm",
)  # fmt: skip
MAY_NAME_TORCH_PRIVATES = ("inventory", "torch_versions", "corpus.record")


def imported(module: str) -> Iterator[str]:
    """Every module that this one imports anywhere in its text, but for annotations alone."""
    for node in _running_code(MODULES[module]):
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


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_results_can_be_read_and_judged_without_torch(name: str) -> None:
    assert not imports(f"conformance.{name}", "torch")


def test_importing_them_loads_no_torch_by_way_of_others() -> None:
    names = ", ".join(f"conformance.{name}" for name in WITHOUT_TORCH)
    code = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("conformance.plugin")])
def test_pytest_is_imported_by_the_plugin_alone(module: str) -> None:
    assert not imports(module, "pytest")
    assert not imports(module, "_pytest")


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_the_edges(module: str) -> None:
    assert not imports(module, "conformance.cli")
    if not module.startswith("conformance.plugin"):
        assert not imports(module, "conformance.plugin")
    if module != "conformance.cli" and not module.startswith("conformance.commands"):
        assert not imports(module, "conformance.commands")


def test_the_suite_and_the_backends_do_not_know_each_other() -> None:
    for found in matrix.load_all(ROOT / "matrices"):
        assert not [m for m in MODULES if imports(m, found.module)]
        for file in (ROOT / found.project).rglob("python/**/*.py"):
            assert not re.search(r"^\s*(from|import) conformance\b", file.read_text(encoding="utf-8"), re.MULTILINE), (
                file
            )


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
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
    """``torch._C`` and the like, as written; empty for anything else."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
    return text if re.fullmatch(r"torch(\.\w+)*\._[A-Za-z]\w*", text) else ""


def test_every_module_says_in_its_first_line_what_it_knows() -> None:
    silent = [m for m, tree in MODULES.items() if not (ast.get_docstring(tree) or "").strip()]
    assert silent == []
