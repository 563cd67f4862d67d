"""`nightly`: the steps of the nightly workflow after the runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import click

from conformance.commands.edge import Commands, Mistake, expected_option, mistakes, results_option
from conformance.nightly import plan, relay, searches, tonight, verdict
from conformance.nightly.plan import Action, Issue
from conformance.nightly.searches import Search
from conformance.nightly.tonight import Lane
from conformance.nightly.verdict import Culprit
from conformance.results import diff
from conformance.results.history import NIGHTS
from conformance.results.store import StoreError, runs
from conformance.support.exit_codes import Exit
from conformance.support.toml_table import TomlError
from conformance.support.wording import counted
from conformance.vocabulary import Status

BISECT = Path("bisect")
SEARCHES = "searches.json"
LABEL = "op-conformance"
_OF_ISSUE: dict[str, tuple[type, ...]] = {"number": (int,), "title": (str,), "body": (str,), "state": (str,)}
_OF_ACTION: dict[str, tuple[type, ...]] = {
    "kind": (str,), "number": (int, type(None)), "title": (str,), "body": (str,), "comment": (str,),
}  # fmt: skip
OF_NIGHTLY = "*-torchnightly-*"  # the lanes whose results go to PyTorch's CI

_gh = click.option("--gh", default="gh", show_default=True, help="The command line of GitHub.")
_bisect = click.option(
    "--bisect",
    "found",
    type=click.Path(path_type=Path),
    default=BISECT,
    show_default=True,
    help="The directory of the searches.",
)


@click.group(cls=Commands)
def nightly() -> None:
    """A night's results: bisect new failures, plan issues, report to PyTorch's CI relay."""


@nightly.command("search")
@results_option
@expected_option
@click.option(
    "--out", type=click.Path(path_type=Path), default=BISECT, show_default=True, help="The directory of the searches."
)
@click.option("--most", type=click.IntRange(min=1), default=5, show_default=True, help="Families of each lane.")
@click.option("--dry-run", is_flag=True, help="Print the searches without running them.")
@click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="-- [OPTION OF BISECT]...")
def search_(results: Path, expected: Path | None, out: Path, most: int, dry_run: bool, more: tuple[str, ...]) -> None:
    """Bisect new failures: in each lane one case of each family, between last night's commit and tonight's."""
    with mistakes(StoreError, TomlError, OSError):
        wanted = [s for lane in tonight.read(results, expected) if (s := _search(lane, most))]
        out.mkdir(parents=True, exist_ok=True)
        (out / SEARCHES).write_text(json.dumps([s.to_json() for s in wanted], indent=1) + "\n", encoding="utf-8")
    codes = [_carry_out(s, out, dry_run, more) for s in wanted]
    click.echo(f"cells that newly fail: in {counted(len(wanted), 'lane')}", err=True)
    if any(code not in (Exit.OK, Exit.CELLS_FAILED) for code in codes):  # 1: no culprit was found
        raise Mistake("a search failed; see above")


@nightly.command("diff")
@results_option
@expected_option
def diff_(results: Path, expected: Path | None) -> None:
    """Print how each lane of tonight differs from its previous complete run. The exit code is the worst of `diff`."""
    codes = [Exit.OK]
    with mistakes(StoreError, TomlError, OSError):
        for lane in tonight.read(results, expected):
            if lane.before is None:
                click.echo(f"{lane.run.name}: not compared: it is not complete, or the first complete run of its lane")
                continue
            click.echo(diff.text(lane.changes, lane.before.name, lane.run.name) + "\n")
            codes.append(diff.exit_code(lane.changes))
    sys.exit(max(codes, key=diff.gravity))


@nightly.command("plan")
@results_option
@expected_option
@_bisect
@click.option(
    "--issues", type=click.File(encoding="utf-8"), help="The output of gh issue list --json; default: run gh."
)
@_gh
def plan_(results: Path, expected: Path | None, found: Path, issues: TextIO | None, gh: str) -> None:
    """Print, as JSON, which issues to open, update, reopen and close."""
    with mistakes(StoreError, TomlError, OSError, ValueError):
        lanes = tonight.read(results, expected)
        failing = [f for lane in lanes for f in lane.failing]
        whole = {lane.run.manifest.lane for lane in lanes if lane.run.whole and lane.run.manifest.complete}
        culprits = {case: culprit.text for case, culprit in _culprits(found).items()}
        known = _issues(_json(issues) if issues else _asked(gh))
        actions = plan.plan(failing, whole, culprits, known, tonight.night(lanes))
    click.echo(json.dumps([action.to_json() for action in actions], indent=1))


@nightly.command("apply")
@click.argument("file", type=click.File(encoding="utf-8"), metavar="PLAN")
@_gh
def apply_(file: TextIO, gh: str) -> None:
    """Carry out a PLAN with gh in the current repository. Continues if an action fails; then exits with 1."""
    with mistakes(ValueError):
        actions = _actions(file)
    failed = 0
    gh = _program(gh) if actions else gh
    with mistakes(OSError):
        if any(action.kind == "open" for action in actions):
            subprocess.run([gh, "label", "create", LABEL, "--force"], check=False)
        for action in actions:
            for command, body in _commands(action):
                done = subprocess.run([gh, *command], input=body, text=True, check=False)
                failed += done.returncode != 0
    click.echo(f"{counted(len(actions), 'action')}, {counted(failed, 'command')} failed", err=True)
    sys.exit(Exit.CELLS_FAILED if failed else Exit.OK)


@nightly.command("relay")
@results_option
@expected_option
@_bisect
@click.option("--commit", default="", help="The full commit of torch; default: that of the runs.")
@click.option("--artifacts", default="", metavar="URL", help="A page with the results.")
@click.option("--lanes", default="", metavar="A,B", help=f"Names, or patterns of them; default: {OF_NIGHTLY}, if any.")
def relay_(results: Path, expected: Path | None, found: Path, commit: str, artifacts: str, lanes: str) -> None:
    """Print the inputs of the callback action of PyTorch's CI relay, as a step's outputs; nothing if no lane ran."""
    with mistakes(StoreError, TomlError, OSError, ValueError):
        wanted = [name.strip() for name in (lanes or OF_NIGHTLY).split(",")]
        found_ = tonight.read(results, expected)
        ran = [lane for lane in found_ if any(fnmatchcase(lane.run.manifest.lane, name) for name in wanted)]
        if lanes and not ran:
            raise Mistake(f"--lanes: no lane of tonight is called {lanes}")
        if not ran:
            click.echo(f"nothing to report: no lane of tonight is called {OF_NIGHTLY}", err=True)
            return
        commit = relay.commit([commit] if commit else [lane.run.manifest.torch_commit for lane in ran])
        failing = [f for lane in ran for f in lane.failing]
        why = verdict.verdict([_evidence(lane) for lane in ran], _culprits(found), version("op-conformance"))
        click.echo(relay.outputs(relay.inputs([*map(_ran, ran)], failing, commit, artifacts, why)), nl=False)


@nightly.command("forget")
@results_option
@click.option("--keep", type=click.IntRange(min=2), default=NIGHTS, show_default=True, help="Runs of each lane.")
def forget_(results: Path, keep: int) -> None:
    """Delete the closed runs of each lane except the latest ones and the latest complete run."""
    if not results.is_dir():
        raise Mistake(f"--results {results}: no such directory")
    with mistakes(StoreError):
        dropped = runs.forget(results, keep)
    click.echo(f"{counted(len(dropped), 'run')} deleted" + (f", the oldest {dropped[0]}" if dropped else ""), err=True)


def _search(lane: Lane, most: int) -> Search | None:
    if lane.before is None:
        return None
    new = [f for f in lane.failing if f.cell in lane.new]
    return searches.search(lane.before.manifest, lane.run.manifest, new, most)


def _carry_out(search: Search, out: Path, dry_run: bool, more: Sequence[str]) -> int:
    command = ["bisect", *search.arguments(), "--out", str(out / search.lane), *more]
    if search.why_not or dry_run:
        click.echo(f"{search.lane}: {search.why_not or ' '.join(command)}")
        return Exit.OK
    return subprocess.run([sys.executable, "-m", "conformance.cli", *command], check=False).returncode


def _culprits(found: Path) -> dict[str, Culprit]:
    """Return the results of a night's searches by case. Raises ValueError for a file of another format."""
    known = found / SEARCHES
    culprits = _of_file(known, _known_culprits) if known.is_file() else {}
    for file in sorted(found.glob("*/result.json")):
        culprits |= _of_file(file, _found)
    return culprits


def _of_file(file: Path, read: Callable[[Any], dict[str, Culprit]]) -> dict[str, Culprit]:
    try:
        return read(json.loads(file.read_text(encoding="utf-8")))
    except (KeyError, TypeError, ValueError) as e:
        raise ValueError(f"{file}: expected what `conformance nightly search` writes: {e!r}") from e


def _known_culprits(searches: Sequence[dict[str, Any]]) -> dict[str, Culprit]:
    """Return the culprits that are known without a search."""
    return {case: Culprit("torch", kept["culprit"]) for kept in searches if kept["culprit"] for case in kept["cases"]}


def _found(facts: dict[str, Any]) -> dict[str, Culprit]:
    """Return the culprits that a search found, by case, from the facts of its report."""
    named = {p["name"]: f"{p['name']} ({p['title']})" if p["title"] else p["name"] for p in facts["points"]}
    return {
        case["case"]: Culprit(
            facts["axis"], f"{facts['axis']}: last good {named[case['before']]}, first bad {named[case['after']]}"
        )
        for case in facts["cases"]
        if case["kind"] in ("culprit", "range")
    }


def _asked(gh: str) -> Any:
    """Return the suite's issues, open and closed. Raises Mistake if there is no gh, ValueError if it fails."""
    wanted = [f"--label={LABEL}", "--state=all", "--limit=1000", "--json=number,title,body,state"]
    command = [_program(gh), "issue", "list", *wanted]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{gh} could not list the issues (exit code {done.returncode}); expected --issues FILE")
    return json.loads(done.stdout)


def _program(gh: str) -> str:
    if shutil.which(gh) is None:
        raise Mistake(f"--gh {gh}: no such program; expected GitHub's command line, or for a plan --issues FILE")
    return gh


def _json(file: TextIO) -> Any:
    """Return the value in an open JSON file. Raises ValueError if the file is not JSON."""
    try:
        return json.load(file)
    except ValueError as e:
        raise ValueError(f"{file.name}: not JSON: {e}") from e


def _actions(file: TextIO) -> list[Action]:
    """Return the actions of a plan. Raises ValueError for a file of another kind."""
    records = _json(file)
    try:
        return [Action(**_checked(record, _OF_ACTION)) for record in _list(records)]
    except (KeyError, TypeError) as e:
        raise ValueError(f"{file.name}: expected the actions that `conformance nightly plan` prints: {e!r}") from e


def _issues(records: Any) -> list[Issue]:
    """Return the issues. Raises ValueError if the records are not those of gh."""
    try:
        given = [_checked(record, _OF_ISSUE) for record in _list(records)]
    except (KeyError, TypeError) as e:
        raise ValueError(f"--issues: expected a list with number, title, body and state of each: {e!r}") from e
    return [Issue(r["number"], r["title"], r["body"], r["state"].upper() == "OPEN") for r in given]


def _list(records: Any) -> list[Any]:
    """Return the records. Raises TypeError if they are not a list."""
    if not isinstance(records, list):
        raise TypeError(f"got a {type(records).__name__}")
    return records


def _checked(record: Any, fields: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return the record. Raises KeyError or TypeError if its fields do not have the types ``fields``."""
    for name, kinds in fields.items():
        if not isinstance(record[name], kinds):
            raise TypeError(f"{name} is {record[name]!r:.60}")
    return dict(record)


def _commands(action: Action) -> list[tuple[list[str], str]]:
    """Return the arguments and the stdin of each gh command. gh takes no text of the action for an option."""
    number = [] if action.number is None else [str(action.number)]
    found: list[tuple[list[str], str]] = []
    if action.kind == "open":
        title = f"--title={action.title}"
        return [(["issue", "create", title, f"--label={LABEL}", "--body-file=-"], action.body)]
    if action.kind == "reopen":
        found.append((["issue", "reopen", *number], ""))
    if action.body:
        found.append((["issue", "edit", *number, "--body-file=-"], action.body))
    if action.comment:
        found.append((["issue", "comment", *number, "--body-file=-"], action.comment))
    if action.kind == "close":
        found.append((["issue", "close", *number], ""))
    return found


def _ran(lane: Lane) -> relay.Ran:
    covered = runs.summary(lane.run)["coverage"]
    manifest = lane.run.manifest
    return relay.Ran(manifest.lane, manifest.torch, lane.run.by_status, covered["compared"], covered["total"])


def _evidence(lane: Lane) -> verdict.Evidence:
    now, before = lane.run.manifest, lane.before.manifest if lane.before else None
    ends = verdict.Ends(
        now.torch, now.torch_commit, before.torch if before else "", before.torch_commit if before else ""
    )
    unreached = lane.run.by_status.get(Status.NOT_REACHED, 0)
    return verdict.Evidence(lane.run.manifest.lane, lane.failing, lane.new, before is not None, unreached, ends)
