"""The reader of lists: exported lists, and lists that backends write for PyTorch's device-type tests.

A Python file is not run; its syntax tree is read. The reader knows ``op_overrides``, ``op_allowlist`` and
``test_exclusions``, where they are assigned, passed by name or added to, and the ``xfail(...)`` and ``skip(...)`` of
``skipOps``. Their values are literals, dtypes as ``torch.float32``, ``DecorateInfo(...)``, and names that the file
assigns. Other values in these places become ``unmapped``. The rest of the file is ignored.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from conformance.device_tests.kinds import TESTS_OF_KIND
from conformance.device_tests.model import NAME, DeviceTestList, Entry, ListError
from conformance.vocabulary import DTYPES

_TABLES = ("op_overrides", "op_allowlist", "test_exclusions")
_MARKS = {"xfail": "expected to fail", "skip": "skipped"}
_LISTED = "listed for PyTorch's tests"


class _Unread(Exception):
    """An expression that cannot be read without running it. The message is the reason."""


def read(file: Path) -> DeviceTestList:
    """Return the list in a file, JSON by its suffix, else Python. Raises ListError or OSError."""
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".json":
            return DeviceTestList.from_json(json.loads(text), str(file))
        tree = ast.parse(text)
    except (UnicodeDecodeError, json.JSONDecodeError, SyntaxError, RecursionError, ValueError) as e:
        if isinstance(e, ListError):
            raise
        raise ListError(f"{file}: neither JSON nor Python: {e}; expected a list of device-type tests") from e
    exported = _exported(tree)
    if exported is not None:
        try:
            return DeviceTestList.from_json(ast.literal_eval(exported), str(file))
        except (ValueError, TypeError, SyntaxError, RecursionError) as e:
            if isinstance(e, ListError):
                raise
            raise ListError(f"{file}:{exported.lineno}: {NAME} is not a literal ({e})") from e
    return _Reader(tree, file).read()


def _exported(tree: ast.Module) -> ast.expr | None:
    return next((value for name, value in _assigned(tree) if name == NAME), None)


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names (or attributes) and values of assignments, in the order of the text."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.Assign, ast.AnnAssign))]
    for node in sorted(nodes, key=lambda n: n.lineno):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if node.value is not None:
                yield _name(target), node.value


def _added(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield tables and values added: ``t |= {...}``, ``t[op] = [...]``, ``t.update({...})``, ``t.append(op)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            yield _name(node.target), node.value
        elif isinstance(node, ast.Assign):
            for target in (t for t in node.targets if isinstance(t, ast.Subscript)):
                yield _name(target.value), ast.copy_location(ast.Dict([target.slice], [node.value]), node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            of, (value,) = _name(node.func.value), node.args
            if node.func.attr in ("update", "extend"):
                yield of, value
            elif node.func.attr in ("add", "append"):
                yield of, ast.copy_location(ast.List([value], ast.Load()), node)


def _passed(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names and values of arguments that are passed by name."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.keyword))
    yield from ((node.arg, node.value) for node in nodes if node.arg)


class _Reader:
    """The reader of one Python file."""

    def __init__(self, tree: ast.Module, file: Path) -> None:
        self._tree, self._file = tree, file
        self._values = dict(_assigned(tree))
        self._unmapped: dict[str, list[str]] = defaultdict(list)

    def read(self) -> DeviceTestList:
        entries: list[Entry] = []
        allowed: tuple[str, ...] | None = None
        seen = False
        for name, value in (*_assigned(self._tree), *_passed(self._tree), *_added(self._tree)):
            table = name.casefold()
            if table not in _TABLES or (isinstance(value, ast.Constant) and value.value is None):
                continue
            if isinstance(value, ast.Name) and value.id.casefold() == table:
                continue  # this value is read where the name is assigned
            seen = True
            if table == "op_allowlist":
                allowed = (*(allowed or ()), *self._allowed(value))
            else:
                entries += self._overrides(value) if table == "op_overrides" else self._exclusions(value)
        marks = [*self._marks()]
        if not (seen or marks):
            raise ListError(f"{self._file}: no list found; expected {', '.join(_TABLES)}, skipOps or {NAME}")
        unmapped = {why: tuple(places) for why, places in sorted(self._unmapped.items())}
        return DeviceTestList((*entries, *marks), allowed, unmapped)

    def _overrides(self, table: ast.expr) -> Iterator[Entry]:
        for key, value in self._items(table):
            op = self._string(key)
            for decorator in self._listed(value) if op is not None else ():
                yield from self._or_unmapped(decorator, self._decorated, op)

    def _decorated(self, call: ast.expr, op: str | None) -> Iterator[Entry]:
        """Yield the entry of a ``DecorateInfo(decorator, cls_name, test_name, *, dtypes)``."""
        if not isinstance(call, ast.Call) or _name(call.func) != "DecorateInfo" or not call.args:
            raise _Unread("not a DecorateInfo")
        given = dict(zip(("decorators", "cls_name", "test_name"), call.args))
        given |= {k.arg: k.value for k in call.keywords if k.arg}
        reason = self._reason(given["decorators"])
        active = self._value(given["active_if"]) if "active_if" in given else True
        if active is not True:
            raise _Unread("active_if is not True")
        test = self._value(given["test_name"]) if "test_name" in given else None
        if "cls_name" in given and test is None and self._value(given["cls_name"]) is not None:
            raise _Unread("names a class and no test")
        dtypes = self._dtypes(given["dtypes"]) if "dtypes" in given else ()
        yield Entry(op or "", _kinds(test), dtypes, reason)

    def _reason(self, decorators: ast.expr) -> str:
        """Return why a decorator leaves tests out. Raises _Unread if it does something else."""
        first = decorators.elts[0] if isinstance(decorators, (ast.Tuple, ast.List)) and decorators.elts else decorators
        name = _name(first.func if isinstance(first, ast.Call) else first)
        if name == "expectedFailure":
            return f"{_LISTED}: {_MARKS['xfail']}"
        if name != "skip":
            raise _Unread(f"the decorator {name or ast.unparse(first)} says of no failure")
        said = self._value(first.args[0]) if isinstance(first, ast.Call) and first.args else ""
        return f"{_LISTED}: {said if isinstance(said, str) and said else _MARKS['skip']}"

    def _exclusions(self, table: ast.expr) -> Iterator[Entry]:
        for key, value in self._items(table):
            for name in [value] if isinstance(value, ast.Constant) else self._listed(value):
                yield from self._or_unmapped(name, self._excluded, self._string(key))

    def _excluded(self, name: ast.expr, cls: str | None) -> Iterator[Entry]:
        test = self._value(name)
        if test == "*":
            raise _Unread(f"leaves out all of {cls}, whatever the op")
        yield Entry("*", _kinds(test), (), f"{_LISTED}: {cls}.{test} is left out")

    def _allowed(self, table: ast.expr) -> Iterator[str]:
        for element in self._listed(table):
            op = self._string(element)
            if op is not None:
                yield op

    def _marks(self) -> Iterator[Entry]:
        """Yield the entries of ``xfail(op, variant, dtypes=...)`` and ``skip(...)``, by the test that they decorate."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MARKS and node.args:
                yield from self._or_unmapped(node, self._marked, self._test_of(node))

    def _marked(self, call: ast.expr, test: str | None) -> Iterator[Entry]:
        if not isinstance(call, ast.Call):
            raise _Unread("not a call")
        named = [self._value(arg) for arg in call.args[:2]]
        given = {k.arg: k.value for k in call.keywords}
        if "variant_name" in given:
            named.append(self._value(given["variant_name"]))
        if not all(isinstance(part, str) for part in named):
            raise _Unread("the name of the op is no string")
        dtypes = self._dtypes(given["dtypes"]) if "dtypes" in given else ()
        reason = f"{_LISTED}: {_MARKS[_name(call.func)]}"
        yield Entry(".".join(part for part in named if part), _kinds(test) if test else (), dtypes, reason)

    def _test_of(self, call: ast.Call) -> str | None:
        """Return the name of the test whose decorator contains the call, None if it is in no decorator."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.FunctionDef) and any(
                inner is call for d in node.decorator_list for inner in ast.walk(d)
            ):
                return node.name
        return None

    def _or_unmapped(
        self, node: ast.expr, read_one: Callable[[ast.expr, str | None], Iterator[Entry]], of: str | None
    ) -> list[Entry]:
        try:
            return list(read_one(node, of))
        except _Unread as e:
            self._leave_out(node, str(e))
            return []

    def _leave_out(self, node: ast.expr, why: str) -> None:
        self._unmapped[why].append(f"line {node.lineno}: {ast.unparse(node)[:80]}")

    def _items(self, table: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
        found = self._resolved(table)
        if not isinstance(found, ast.Dict):
            self._leave_out(table, "not written as a dict")
            return []
        pairs = [(key, value) for key, value in zip(found.keys, found.values) if key is not None]
        for value in (v for key, v in zip(found.keys, found.values) if key is None):
            pairs += self._items(value)
        return pairs

    def _listed(self, value: ast.expr) -> list[ast.expr]:
        try:
            return self._elements(value)
        except _Unread as e:
            self._leave_out(value, str(e))
            return []

    def _elements(self, value: ast.expr) -> list[ast.expr]:
        """Return the elements of a list, tuple or set, or of a sum or union of them. Raises _Unread."""
        found = self._resolved(value)
        if isinstance(found, ast.Call) and _name(found.func) in ("set", "frozenset", "list", "tuple") and found.args:
            return self._elements(found.args[0])
        if isinstance(found, ast.BinOp) and isinstance(found.op, (ast.Add, ast.BitOr)):
            return self._elements(found.left) + self._elements(found.right)
        if not isinstance(found, (ast.List, ast.Tuple, ast.Set)):
            raise _Unread("not written as a list")
        inner = ([e] if not isinstance(e, ast.Starred) else self._elements(e.value) for e in found.elts)
        return [element for elements in inner for element in elements]

    def _string(self, node: ast.expr) -> str | None:
        try:
            value = self._value(node)
        except _Unread as e:
            self._leave_out(node, str(e))
            return None
        if not isinstance(value, str):
            self._leave_out(node, "not a string")
            return None
        return value

    def _dtypes(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(self._resolved(node), ast.Constant) and self._value(node) is None:
            return ()
        try:
            found = tuple(_name(self._resolved(element)) for element in self._elements(node))
        except _Unread:
            found = ()
        if not found or not set(found) <= set(DTYPES):
            raise _Unread("its dtypes are not written as torch.<dtype>")
        return found

    def _value(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(self._resolved(node))
        except (ValueError, TypeError, SyntaxError) as e:
            raise _Unread(f"{ast.unparse(node)[:40]} is not a literal") from e

    def _resolved(self, node: ast.expr) -> ast.expr:
        """Return the value that the file assigns to a name; for any other node, the node itself."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id in self._values and node.id not in seen:
            seen.add(node.id)
            node = self._values[node.id]
        return node


def _name(node: ast.expr) -> str:
    return getattr(node, "attr", "") or getattr(node, "id", "")


def _kinds(test: Any) -> tuple[str, ...]:
    """Return the kinds of a test of PyTorch; for None, (), which means all tests. Raises _Unread if it has no kind."""
    if test is None:
        return ()
    found = tuple(kind for kind, tests in TESTS_OF_KIND.items() if test in tests)
    if not found:
        raise _Unread(f"{test} is no test of a kind that the suite tries")
    return found
