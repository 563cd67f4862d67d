"""A JSON object in a file of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from conformance.results.store.manifest import StoreError


def write_object(file: Path, record: dict[str, Any]) -> None:
    """Write an object, indented. Raises OSError if the file cannot be written."""
    file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a file. Raises StoreError if the file cannot be read, or holds anything else."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except OSError as e:
        raise StoreError(f"{file}: {e.strerror}") from e
    except ValueError as e:
        raise StoreError(f"{file}: not JSON: {e}") from e
    if not isinstance(record, dict):
        raise StoreError(f"{file}: expected a JSON object, got {type(record).__name__}")
    return record
