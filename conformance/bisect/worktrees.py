"""Checks commits out, each into the first directory that is free, so that paths are the same from commit to commit.

A compiler's cache finds nothing under another path: sources name their own files, and unity builds hold whole paths.
"""

from __future__ import annotations

import fcntl
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from conformance.bisect.processes import Processes

SOURCE = "source"  # the worktree, in a directory where what is built of it may lie too


class CheckoutError(Exception):
    """A commit that cannot be checked out."""

    def __init__(self, step: str, output: str) -> None:
        """``step``: what failed. ``output``: the last lines that git printed."""
        super().__init__(f"{step}\n{output}")
        self.step, self.output = step, output


@dataclass
class Worktrees:
    """Of one repository, in one directory that other searches may use too. For several threads."""

    directory: Path
    repository: Path
    processes: Processes
    _kept: ExitStack = field(default_factory=ExitStack)
    _held: dict[str, Path] = field(default_factory=dict)  # commit -> its worktree, of those that stay
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, commit: str) -> Path:
        """The commit's worktree, until ``close``. Raises CheckoutError, Stopped."""
        with self._lock:
            if commit not in self._held:
                self._held[commit] = self._kept.enter_context(self.checked_out(commit))
            return self._held[commit]

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """The commit's worktree, removed after, with what lies beside it. Raises CheckoutError, Stopped."""
        with self._free() as place:
            if place.exists():  # of a search that was killed
                self._remove(place)
            try:
                command = ["git", "-C", str(self.repository), "worktree", "add", "--force", "--detach"]
                ended = self.processes.run([*command, str(place / SOURCE), commit])
                if ended.code:
                    raise CheckoutError("git worktree add failed:", ended.last_lines())
                yield place / SOURCE
            finally:
                self._remove(place)

    def close(self) -> None:
        """Remove what is kept."""
        self._kept.close()
        self._held.clear()

    def _remove(self, place: Path) -> None:
        """Also where the making was interrupted: then git still locks it, and what is locked is not pruned."""
        where = place / SOURCE
        where.mkdir(parents=True, exist_ok=True)  # git unlocks only what is there
        Processes().run(["git", "-C", str(self.repository), "worktree", "unlock", str(where)])
        shutil.rmtree(place, ignore_errors=True)
        Processes().run(["git", "-C", str(self.repository), "worktree", "prune"])

    @contextmanager
    def _free(self) -> Iterator[Path]:
        """A directory that nobody else has; the system gives it back when this process dies."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for number in count():
            with (self.directory / f"{number}.lock").open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                yield self.directory / str(number)
                return
