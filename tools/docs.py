"""The generated tables in the docs: ``python -m tools.docs`` checks them, ``--write`` updates them.

A table is between ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import click
import pytest

from conformance import cli, plugin
from conformance.aoti import text as aoti
from conformance.aoti.kernels import Conclusion
from conformance.aoti.model import Axis, End
from conformance.device_tests import kinds
from conformance.lanes import matrix
from conformance.layouts import LAYOUTS
from conformance.perf import model as perf_model
from conformance.results import contract_ends
from conformance.support.exit_codes import Exit
from conformance.support.markup import cell
from conformance.support.suggestions import unknown
from conformance.vocabulary import Check, Fact, Route, Status, Word
from tools import generated, scale
from tools.causes import outcome
from tools.causes import tables as causes
from tools.causes.reasons import REASONS
from tools.faults import HUGE, SPEED, Planted, planted
from tools.kill_rate import tables
from tools.kill_rate.summary import lacking, unmeasured
from tools.settings import tables as settings
from tools.settings.model import Measured

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md", "CONTRIBUTING.md", "docs/reference.md", "docs/faults.md", "docs/kill-rate.md", "docs/causes.md",
    "docs/settings.md", "docs/contract.md", "docs/aoti.md", "docs/perf.md",
    "docs/scale.md",
)  # fmt: skip
GENERATED = ROOT / "conformance" / "corpus" / "data" / "generated.jsonl.gz"
KILL_RATE = ROOT / "docs" / "kill-rate.json"
AOTI = ROOT / "docs" / "aoti.json"
CONTRACT = ROOT / "docs" / "contract.json"
CAUSES = ROOT / "docs" / "causes.json"

_BLOCK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def main(arguments: list[str]) -> int:
    """Return 1 if a page is out of date, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the tables instead of checking them")
    write = parser.parse_args(arguments).write
    stale = [page for page in PAGES if _renew(ROOT / page, write)]
    for page in stale:
        print(f"{page}: {'renewed' if write else 'stale; renew it with: nox -s docs-check -- --write'}")
    return 1 if stale and not write else 0


def renewed(text: str) -> str:
    """Return a page with new tables. Raises ValueError for an unknown table."""

    def table_of(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in TABLES:
            raise ValueError(unknown("table", name, TABLES))
        return f"{block[1]}{TABLES[name]()}\n{block[3]}"

    return _BLOCK.sub(table_of, text)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *([cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _renew(file: Path, write: bool) -> bool:
    """Return whether the page was out of date."""
    old = file.read_text(encoding="utf-8")
    new = renewed(old)
    if write and new != old:
        file.write_text(new, encoding="utf-8")
    return new != old


def _exit_codes() -> str:
    return table(("code", "name", "meaning"), ((str(int(c)), f"`{c.name}`", c.meaning) for c in Exit))


def _layouts() -> str:
    return table(("layout", "placement of a tensor"), ((f"`{name}`", words) for name, words in LAYOUTS.items()))


def _device_test_kinds() -> str:
    """Return the kinds of PyTorch's device-type tests, with the layouts and forms of calls that they stand for."""
    stand_for = {
        kind: [name for name, of in kinds.KIND_OF_LAYOUT.items() if of == kind] for kind in kinds.TESTS_OF_KIND
    }
    rows = (
        (f"`{kind}`", ", ".join(map("`{}`".format, stand_for[kind])) or kinds.FORMS[kind],
         ", ".join(map("`{}`".format, tests)) or "all")
        for kind, tests in kinds.TESTS_OF_KIND.items()
    )  # fmt: skip
    return table(("kind", "layouts and contexts", "tests"), rows)


def _generated() -> str:
    return table(("varies", "class", "overloads", "samples"), generated.rows(GENERATED))


def _contract() -> str:
    """Return the programs about PyTorch's contract with devices, and how each ended on the measured backends."""
    ends = contract_ends.load(CONTRACT)
    programs = {name: program for ended in ends.values() for name, program in ended.items()}
    rows = (
        (program.area, program.promise.replace("``", "`"), *(_ended(ended.get(name)) for ended in ends.values()))
        for name, program in sorted(programs.items(), key=lambda p: (p[1].area, p[0]))
    )
    return table(("area", "what PyTorch promises", *(f"`{backend}`" for backend in ends)), rows)


def _ended(program: contract_ends.Ended | None) -> str:
    return program.text if program else "not run"


def _aoti(model: str) -> str:
    """Return how the mismatches of one of the built-in models ended, from the output of ``conformance aoti --json``."""
    reports = json.loads(AOTI.read_text(encoding="utf-8"))
    found = next(r for r in reports if r["model"].endswith(f":{model}"))
    return table(aoti.COLUMNS, aoti.rows(map(aoti.finding_from, found["findings"])))


def _words(words: Iterable[Word]) -> str:
    return table(("word", "meaning"), ((f"`{w}`", w.meaning) for w in words if w))


def _checks() -> str:
    return table(("check", "fails when"), ((f"`{check}`", check.meaning) for check in Check))


def _facts() -> str:
    return table(("kind", "facts"), ((f"`{fact}`", fact.meaning) for fact in Fact))


def _statuses() -> str:
    return table(
        ("status", "meaning", "failure"), ((f"`{s}`", s.meaning, "yes" if s.is_failure else "") for s in Status)
    )


def _routes() -> str:
    return table(("route", "what runs for the overload"), ((f"`{route}`", route.meaning) for route in Route))


def _options() -> str:
    options = _Options()
    plugin.pytest_addoption(cast(pytest.Parser, options))
    return table(("option", "what it does"), options.rows)


def _commands() -> str:
    """Return the commands of ``conformance``, including those of groups."""
    rows: list[tuple[str, str]] = []
    group, context = cli.commands, click.Context(cli.commands)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inside = _inside(command) if isinstance(command, click.Group) else [("", command)]
        rows += [(f"`{f'{name} {sub}'.strip()}`", _first(str(c.help))) for sub, c in inside if c]
    return table(("command", "what it does"), rows)


def _inside(group: click.Group) -> list[tuple[str, click.Command | None]]:
    """Return the commands of a group in the order of their definition, then those that are imported on use."""
    context = click.Context(group)
    later = [name for name in group.list_commands(context) if name not in group.commands]
    return [*group.commands.items(), *((name, group.get_command(context, name)) for name in later)]


def _first(text: str) -> str:
    """Return the first paragraph on one line, for a row of a table."""
    return " ".join(text.partition("\n\n")[0].split())


class _Options:
    """A replacement for pytest's parser that collects the plugin's options."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def getgroup(self, *_: str) -> _Options:
        return self

    def addoption(self, *names: str, **given: Any) -> None:
        metavar = f" {given['metavar']}" if "metavar" in given else ""
        self.rows.append((", ".join(f"`{name}{metavar}`" for name in names), given.get("help", "")))


def _faults() -> str:
    rows = ((f"`{name}`", fault.kind, fault.description) for name, fault in _planted().items())
    return table(("fault", "class", "what it does wrong"), rows)


def _planted() -> dict[str, Planted]:
    return {k: v for m in matrix.load_all(ROOT / "matrices") for k, v in planted(ROOT / m.project).items()}


def _with_results() -> dict[str, Planted]:
    """Return the faults that the suite's cells should find: all but those that make calls slow or need huge tensors."""
    return {name: fault for name, fault in _planted().items() if fault.kind not in (SPEED, HUGE)}


def _measured() -> dict[str, Any]:
    """Return the committed kill-rate. Raises ValueError if it is not about the current faults and lanes."""
    made: dict[str, Any] = json.loads(KILL_RATE.read_text(encoding="utf-8"))
    wrong = lacking(made, _planted())
    if wrong:
        raise ValueError(
            f"{KILL_RATE.name} is stale ({'; '.join(wrong)}); renew it with: nox -s kill-rate -- --unmeasured --publish"
        )
    return made


def _unmeasured(file: Path) -> str:
    """Return the faults that a committed measurement does not cover yet."""
    faults = _with_results()
    names = unmeasured(json.loads(file.read_text(encoding="utf-8")), faults)
    said = f"{len(names)} of {len(faults)} faults were planted since, and are not measured yet"
    if not names:
        return said
    return f"<details><summary>{said}</summary>\n\n{', '.join(f'`{n}`' for n in names)}\n\n</details>"


def _kill_rate_by_class() -> str:
    kinds = {name: fault.kind for name, fault in _with_results().items()}
    return table(*tables.classes(_measured(), kinds))


def _kill_rate(part: Callable[[dict[str, Any]], tables.Table]) -> str:
    return table(*part(_measured()))


def _causes(part: Callable[[dict[str, Any]], tables.Table]) -> str:
    """Return a table of the committed causes. Raises ValueError if they are not about the current faults."""
    made: dict[str, Any] = json.loads(CAUSES.read_text(encoding="utf-8"))
    wrong = outcome.lacking(made, _planted(), REASONS)
    if wrong:
        raise ValueError(f"{CAUSES.name} is stale ({'; '.join(wrong)}); renew it with: nox -s causes -- --publish")
    return table(*part(made))


def _lanes() -> str:
    rows = [
        (t.version, f"`{t.requirement}`", t.python or "that of nox", t.tier, f"`nox -s conformance-{t.version}`")
        for m in matrix.load_all(ROOT / "matrices")
        for t in m.torches
    ]
    return table(("torch", "requirement", "Python", "tier", "its session"), rows)


def _builds() -> str:
    rows = [
        (f"`{b.name}`", ", ".join(b.sanitizers) or "none", "when named" if b.on_demand else "always")
        for m in matrix.load_all(ROOT / "matrices")
        for b in m.builds
    ]
    return table(("build", "sanitizers", "runs"), rows)


def _environments() -> str:
    rows = [
        (f"`{e.name}`", " ".join(f"`{k}={v}`" for k, v in e.variables), "when named" if e.on_demand else "always")
        for m in matrix.load_all(ROOT / "matrices")
        for e in m.environments
    ]
    return table(("environment", "variables", "runs"), rows)


def _settings(part: Callable[[Sequence[Measured]], tables.Table]) -> str:
    made = json.loads((ROOT / "docs" / "settings.json").read_text(encoding="utf-8"))
    return table(*part([Measured.from_json(one) for one in made]))


TABLES: dict[str, Callable[[], str]] = {
    "exit-codes": _exit_codes,
    "layouts": _layouts,
    "device-test-kinds": _device_test_kinds,
    "generated": _generated,
    "contract": _contract,
    "aoti-static": partial(_aoti, "static"),
    "aoti-dynamic": partial(_aoti, "dynamic"),
    "aoti-axes": partial(_words, Axis),
    "aoti-ends": partial(_words, End),
    "perf-ends": partial(_words, perf_model.End),
    "aoti-conclusions": partial(_words, Conclusion),
    "checks": _checks,
    "facts": _facts,
    "statuses": _statuses,
    "routes": _routes,
    "options": _options,
    "commands": _commands,
    "faults": _faults,
    "lanes": _lanes,
    "kill-rate-totals": partial(_kill_rate, tables.totals),
    "kill-rate-peers": partial(_kill_rate, tables.peers),
    "kill-rate-classes": _kill_rate_by_class,
    "kill-rate-unmeasured": partial(_unmeasured, KILL_RATE),
    "causes-unmeasured": partial(_unmeasured, CAUSES),
    "kill-rate-faults": partial(_kill_rate, tables.faults),
    "kill-rate-cells": partial(_kill_rate, tables.cells),
    "kill-rate-survivors": partial(_kill_rate, tables.survivors),
    "causes-totals": partial(_causes, causes.totals),
    "causes-faults": partial(_causes, causes.faults),
    "causes-misses": partial(_causes, causes.misses),
    "environments": _environments,
    "settings": partial(_settings, settings.ends),
    "settings-differences": partial(_settings, settings.differences),
    "scale-inputs": partial(_settings, scale.inputs),
    "scale-night": partial(_settings, scale.night),
    "scale-year": partial(_settings, scale.year),
    "builds": _builds,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
