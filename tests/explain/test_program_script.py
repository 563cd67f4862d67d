"""Scripts of scenarios, made of several modules: none redefines a name that an earlier one reads."""

from __future__ import annotations

import ast
import symtable
import sys
import types
from collections.abc import Iterator

import pytest
import torch

from conformance import backends
from conformance.explain import program_script
from conformance.scenarios import catalogue

# One scenario per module: the scripts of a module's scenarios differ only in their last line.
BY_MODULE = {catalogue.find(name).module: name for name in catalogue.names()}


def defined_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module defines or assigns."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
    return {target.id for target in targets if isinstance(target, ast.Name)}


def read_later(table: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names of a module that its functions read when they are called."""
    for child in table.get_children():
        yield from (s.get_name() for s in child.get_symbols() if s.is_global() and s.is_referenced())
        yield from read_later(child)


def taken_away(script: str) -> set[str]:
    """Return the names that are redefined after a function that reads them when it is called."""
    known, read, found = set[str](), set[str](), set[str]()
    for statement in ast.parse(script).body:
        names = defined_by(statement)
        found |= names & known & read
        known |= names
        text = f"from __future__ import annotations\n{ast.unparse(statement)}"  # annotations are not evaluated
        read |= set(read_later(symtable.symtable(text, "script", "exec")))
    return found


@pytest.mark.parametrize(("line", "found"), [("MANY = 3", {"MANY"}), ("FEW = 3", set()), ("def call(): ...", set())])
def test_a_name_that_a_function_reads_is_found_when_it_is_defined_again(line: str, found: set[str]) -> None:
    script = f"MANY = FEW = 2\n\ndef call(n=FEW):\n    return lambda: MANY * n\n\n{line}\n"
    assert taken_away(script) == found


@pytest.mark.parametrize("module", BY_MODULE)
def test_the_modules_of_a_script_take_no_name_from_each_other(module: str) -> None:
    scenario, backend = catalogue.find(BY_MODULE[module]), backends.find("torch:cpu")
    assert taken_away(program_script.script(scenario, backend, "the case")) == set()


@pytest.mark.parametrize("broken", [(), ("conjugate",)])
def test_the_program_of_a_script_leaves_out_what_the_gate_found_broken(
    broken: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, module = catalogue.find("serialization:pickled"), types.ModuleType("the_script")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look up annotations there
    script = program_script.script(scenario, backends.find("torch:cpu"), "the case", without=broken)
    assert ("Found broken by the bring-up gate" in script) == bool(broken)
    exec(script, module.__dict__)
    results = module.pickled("cpu")
    assert isinstance(results["conjugated"], module.NotOffered) == bool(broken)
    assert isinstance(results["dense"], torch.Tensor)
