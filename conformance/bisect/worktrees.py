"""Checkouts of commits, each in the first free directory, so that different commits have the same paths.

ccache needs equal paths, because sources contain their own paths, and unity builds contain absolute paths.
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

SOURCE = "source"  # the worktree, in a directory that may also contain its build


class CheckoutError(Exception):
    """A commit that cannot be checked out."""

    def __init__(self, step: str, output: str) -> None:
        """``step``: the failed step. ``output``: the last lines that git printed."""
        super().__init__(f"{step}\n{output}")
        self.step, self.output = step, output


@dataclass
class Worktrees:
    """The worktrees of one repository, in a directory that other searches may use too. Thread-safe."""

    directory: Path
    repository: Path
    processes: Processes
    _kept: ExitStack = field(default_factory=ExitStack)
    _held: dict[str, Path] = field(default_factory=dict)  # commit -> worktree that stays until close()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self, commit: str) -> Path:
        """Return the commit's worktree, which stays until ``close``. Raises CheckoutError, Stopped."""
        with self._lock:
            if commit not in self._held:
                self._held[commit] = self._kept.enter_context(self.checked_out(commit))
            return self._held[commit]

    @contextmanager
    def checked_out(self, commit: str) -> Iterator[Path]:
        """Check out a commit. The directory of the worktree is removed afterwards. Raises CheckoutError, Stopped."""
        with self._free() as place:
            if place.exists():  # left by a search that was killed
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
        """Remove the kept worktrees."""
        self._kept.close()
        self._held.clear()

    def _remove(self, place: Path) -> None:
        """Remove a worktree. Git locks it if its creation was interrupted, and does not prune locked worktrees."""
        where = place / SOURCE
        where.mkdir(parents=True, exist_ok=True)  # git can only unlock an existing worktree
        Processes().run(["git", "-C", str(self.repository), "worktree", "unlock", str(where)])
        shutil.rmtree(place, ignore_errors=True)
        Processes().run(["git", "-C", str(self.repository), "worktree", "prune"])

    @contextmanager
    def _free(self) -> Iterator[Path]:
        """Lock a free directory. The system releases the lock when this process dies."""
        self.directory.mkdir(parents=True, exist_ok=True)
        for number in count():
            with (self.directory / f"{number}.lock").open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    continue
                yield self.directory / str(number)
                return
