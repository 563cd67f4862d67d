"""Code that the commands share: errors of the user as one line, similar names, common options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

import click

from conformance.support import options
from conformance.support.exit_codes import Exit
from conformance.support.suggestions import unknown

RESULTS = Path("results")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

expected_option = click.option(
    "--expected", type=click.Path(path_type=Path), metavar="PATH",
    help="Known failures: a file, or a directory with <backend>.toml; default: those of the run.",
)  # fmt: skip
results_option = click.option(
    "--results", type=click.Path(file_okay=False, path_type=Path), default=RESULTS, show_default=True,
    help="The directory of stored results.",
)  # fmt: skip


def format_option(*forms: str, more: str = "") -> Callable[[F], F]:
    """Return the decorator for the option ``--format``, with the first of ``forms`` as the default."""
    said = f"The form of the output{more}."
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True, help=said)


_BACKEND = "An installed backend, a shipped adapter, or module:device"
backend_option = click.option(
    "--backend", default="", metavar="NAME", help=f"{_BACKEND}; default: the only one installed."
)
# For commands with another default, for example the backend of the stored results.
recorded_backend_option = click.option("--backend", default="", metavar="NAME", help=f"{_BACKEND}.")


class Mistake(click.ClickException):
    """An error of the user: one line, exit code 2, no traceback."""

    exit_code = Exit.INTERRUPTED


class Interrupted(click.ClickException):
    """Ctrl-C in a command that does not handle it. click would exit with 1, which here means that a cell fails."""

    exit_code = Exit.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("interrupted")


def seconds_option(name: str, default: float, text: str) -> Callable[[F], F]:
    """Return the decorator for an option that takes a positive number of seconds. ``text``: its help."""
    return click.option(
        name, type=float, metavar="SECONDS", callback=_seconds, default=default, show_default=True, help=text
    )


def seed_option(text: str, default: int, least: int = options.SEEDS[0]) -> Callable[[F], F]:
    """Return the decorator for the option ``--seed``. ``text``: its help; ``least``: the smallest seed."""
    kind = click.IntRange(least, options.SEEDS[-1])
    return click.option("--seed", type=kind, metavar="N", default=default, show_default=True, help=text)


def timeout_option(default: float, what: str) -> Callable[[F], F]:
    """Return the decorator for the option ``--timeout``. ``what``: the work that the limit is for."""
    return seconds_option("--timeout", default, f"Seconds {what} may take.")


def _seconds(ctx: click.Context, option: click.Parameter, given: float) -> float:  # noqa: ARG001 - click passes both
    with mistakes(options.OptionError):
        return options.seconds(option.opts[0], given)


class Commands(click.Group):
    """A group that imports a command on use, and lists similar names for an unknown command."""

    def __init__(self, *args: Any, where: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        """``where``: commands by name, each as ``module:attribute`` of this package."""
        super().__init__(*args, **kwargs)
        self._where = dict(where or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._where})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._where and cmd_name not in self.commands:
            module, _, attribute = self._where[cmd_name].partition(":")
            self.add_command(getattr(import_module(f"{__package__}.{module}"), attribute), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise Mistake(unknown("command", args[0], self.list_commands(ctx), f"{ctx.command_path} --help"))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as e:
            raise Interrupted from e


@contextmanager
def mistakes(*kinds: type[Exception]) -> Iterator[None]:
    """Print exceptions of these types as one line instead of a traceback."""
    try:
        yield
    except kinds as e:
        raise Mistake(_line(e)) from e


def last_known(steps: Iterable[T]) -> T:
    """Return the result of the last step, after Ctrl-C of the last step that ended. Raises Mistake if none ended."""
    found: list[T] = []
    try:
        for step in steps:
            found = [step]
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
    if not found:
        raise Mistake("interrupted before anything was known")
    return found[0]


def _line(error: Exception) -> str:
    """Return the message of an exception: without quotes if it is a LookupError, the file first if it is an OSError."""
    if isinstance(error, LookupError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def tell(line: str) -> None:
    """Print a line about the progress of a command to stderr."""
    click.echo(line, err=True)


def need_directory(option: str, file: Path) -> None:
    """Raise Mistake if the directory of a file does not exist or cannot be written."""
    if not file.absolute().parent.is_dir():
        raise Mistake(f"{option} {file}: there is no directory {file.parent}; expected one that exists")
    need_room(option, file.parent)


def need_room(option: str, directory: Path) -> None:
    """Raise Mistake if no file can be written in a directory. Commands check this before hours of work."""
    try:
        TemporaryFile(dir=directory).close()
    except OSError as e:
        raise Mistake(f"{option}: {directory} cannot be written: {e.strerror}; expected another directory") from e


def make_directory(option: str, directory: Path) -> None:
    """Create a directory if it does not exist. Raises Mistake if it cannot be created or written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Mistake(f"{option} {directory}: cannot be created: {e.strerror}; expected another directory") from e
    need_room(option, directory)


def matching(pattern: str, names: Sequence[str]) -> set[str]:
    """Return the names that contain ``pattern`` or match it as a shell pattern. Raises Mistake if there are none."""
    found = {n for n in names if pattern in n or fnmatchcase(n, pattern)}
    if not found:
        raise Mistake(unknown("overload", pattern, names, "conformance inventory"))
    return found
