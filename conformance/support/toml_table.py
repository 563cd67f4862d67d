"""Typed reading of TOML tables. Errors name the file, the key's path, what was found and what is expected."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from conformance.support.suggestions import near

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

_KINDS = {str: "a string", int: "an integer", bool: "true or false", list: "an array", dict: "a table"}


class TomlError(ValueError):
    """An invalid TOML file. The message is one line and names the file and the key."""


class Table:
    """One table of a file. Read the known keys with :meth:`take`. Then :meth:`done` rejects all other keys."""

    def __init__(self, values: dict[str, Any], file: Path, path: str = "") -> None:
        self.file = file
        self.path = path
        self._values = dict(values)
        self._known: set[str] = set()

    @staticmethod
    def load(file: Path) -> Table:
        try:
            return Table(tomllib.loads(file.read_text(encoding="utf-8")), file)
        except FileNotFoundError:
            raise TomlError(f"{file}: no such file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise TomlError(f"{file}: not valid TOML: {e}") from e

    def error(self, key: str, problem: str) -> TomlError:
        place = self._join(key)
        return TomlError(f"{self.file}: {place}: {problem}" if place else f"{self.file}: {problem}")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return the value of ``key``. Raises TomlError if it has another type, or is missing without a default."""
        self._known.add(key)
        if key not in self._values:
            if default is None:
                raise self.error(key, f"missing; expected {_KINDS[kind]}")
            return default
        value = self._values.pop(key)
        # In Python a bool is an int; in TOML it is not.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(key, f"expected {_KINDS[kind]}, got {_shown(value)}")
        return value

    def strings(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return an array of strings. A single string stands for an array of one. Raises TomlError."""
        self._known.add(key)
        value = self._values.get(key)
        if isinstance(value, str):
            del self._values[key]
            return (value,)
        items = self.take(key, list, None if default is None else list(default))
        for i, item in enumerate(items):
            if not isinstance(item, str):
                raise self.error(f"{key}[{i}]", f"expected a string, got {_shown(item)}")
        return tuple(items)

    def one_of(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        value = self.take(key, str, default)
        self.check(key, value, choices)
        return value

    def check(self, key: str, value: str, choices: Iterable[str]) -> None:
        """Raise TomlError unless ``value``, the value of ``key``, is one of the ``choices``."""
        names = list(choices)
        if value not in names:
            raise self.error(key, f"{value!r} is not one of {', '.join(names)}{_near(value, names)}")

    def table(self, key: str) -> Table:
        return Table(self.take(key, dict, {}), self.file, self._join(key))

    def tables(self, key: str) -> list[Table]:
        """Return the tables of ``[[key]]``, an empty list if the key is absent. Raises TomlError."""
        items = self.take(key, list, [])
        for i, item in enumerate(items):
            if not isinstance(item, dict):
                raise self.error(f"{key}[{i}]", f"expected a table, got {_shown(item)}")
        return [Table(item, self.file, f"{self._join(key)}[{i}]") for i, item in enumerate(items)]

    def names(self) -> list[str]:
        return list(self._values)

    def done(self) -> None:
        """Raise TomlError if the table has a key that was not read."""
        for key in self._values:
            known = sorted(self._known)
            raise self.error(key, f"unknown key{_near(key, known)}; valid keys: {', '.join(known)}")

    def _join(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key


def _near(name: str, known: Iterable[str]) -> str:
    found = near(name, known)
    return f" (near: {', '.join(found)})" if found else ""


def _shown(value: object) -> str:
    kind = "true or false" if isinstance(value, bool) else _KINDS.get(type(value), type(value).__name__)
    return f"{kind} {value!r}" if isinstance(value, (str, int, float)) else kind
