"""The lock of a cache. Without it, a second search would delete environments that the first still uses."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class InUse(OSError):
    """Another search prepares versions in the cache."""


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Keep other searches out of a cache. The system releases the lock when this process dies. Raises InUse."""
    with (cache / "search.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise InUse(
                f"--cache {cache}: another search prepares versions there; wait for its end, or give another --cache"
            ) from e
        yield
