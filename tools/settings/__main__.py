"""``python -m tools.settings``: runs the lanes and the tests in each setting. Continues an interrupted run."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree as ET

from conformance.lanes import matrix
from conformance.results.store import Closed, cell_outcomes, runs, views
from conformance.results.store.manifest import MACHINE, StoreError, began, series_name
from conformance.support import machine
from conformance.vocabulary import CellId
from tools.settings.model import SETTINGS, Difference, Measured, Setting

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "settings"
PUBLISHED = ROOT / "docs" / "settings.json"
TESTS = "tests"
FULL = "full"


def main(arguments: list[str]) -> int:
    """Return 1 if a cell or a test failed, else 0."""
    parser = argparse.ArgumentParser(prog="settings", description=__doc__)
    parser.add_argument("--nox", default="nox", help="the program that runs sessions")
    names = [s.name for s in SETTINGS]
    parser.add_argument(
        "--only", action="append", choices=names, help="a setting, several times for several; compared with the first"
    )
    parser.add_argument("--commands", default="2.13,2.8,tests", help="torch versions, and tests")
    parser.add_argument("--tier", default=FULL)
    parser.add_argument("--publish", action="store_true", help="write docs/settings.json")
    given = parser.parse_args(arguments)
    if given.publish and given.tier != FULL:
        parser.error(f"--publish: the docs have the tier {FULL}, not {given.tier}")
    chosen = [s for s in SETTINGS if s.name in (given.only or names)]
    found: list[Measured] = []
    broken: list[NotMeasured] = []
    for command in given.commands.split(","):
        for setting in chosen:
            try:
                found.append(measured(given.nox, setting, command, given.tier))
            except NotMeasured as e:
                broken.append(e)
    for why in broken:
        print(f"settings: {why}", file=sys.stderr)
    for one in found:
        differ = sum(d.cells for d in one.differences)
        print(f"{one.command:6} {one.setting:24} {one.failing} of {one.total} fail, {differ} end otherwise, {one.date}")
    if given.publish:
        publish(found)
    return 1 if broken or any(one.failing or one.exit for one in found) else 0


class NotMeasured(Exception):
    """A command that ended before it had run a lane or the tests."""


def publish(found: Sequence[Measured]) -> None:
    """Write the results to the file of the docs. Older results, and those of other processors and kernels, stay."""
    kept = json.loads(PUBLISHED.read_text(encoding="utf-8")) if PUBLISHED.is_file() else []
    by_name = {(one.kernels, one.setting, one.command): one for one in (*map(Measured.from_json, kept), *found)}
    order = [s.name for s in SETTINGS]
    tried = (one for one in by_name.values() if one.setting in order)
    rows = sorted(tried, key=lambda one: (one.command, one.kernels, order.index(one.setting)))
    PUBLISHED.write_text(json.dumps([asdict(one) for one in rows], indent=1) + "\n", encoding="utf-8")


def measured(nox: str, setting: Setting, command: str, tier: str) -> Measured:
    """Return the outcome of the command in the setting, from an earlier call with this tier or a new run."""
    directory = RESULTS / setting.name.replace(" ", "-").replace(",", "")
    kept = directory / f"{command}.json"
    if kept.is_file():
        one = Measured.from_json(json.loads(kept.read_text(encoding="utf-8")))
        if one.tier == tier or command == TESTS:
            return one
    directory.mkdir(parents=True, exist_ok=True)
    one = _tests(nox, setting, directory) if command == TESTS else _lane(nox, setting, command, tier, directory)
    kept.write_text(json.dumps(asdict(one), indent=1), encoding="utf-8")
    return one


def _lane(nox: str, setting: Setting, version: str, tier: str, directory: Path) -> Measured:
    (m,) = matrix.load_all(ROOT / "matrices")
    lane = next(lane for lane in m.lanes() if lane.torch.version == version)
    arguments = ["--results", str(directory), "--tier", tier, *setting.pytest]
    series = series_name(lane.name, complete=tier == lane.torch.tier, tier=tier)
    first = None if setting == SETTINGS[0] else _first(series, version)  # before hours of running, if there is none
    log, before = directory / f"{version}.log", set(runs.names(directory, series))
    code = _run(nox, setting, f"conformance-{version}({lane.environment.name})", arguments, log)
    made = [name for name in runs.names(directory, series) if name not in before]
    run = runs.find(directory, made[-1]) if made else None
    if run is None or not run.ended:
        raise NotMeasured(f"{setting.name}: the lane of {version} ended with {code} before its last cell: {log}")
    return Measured(
        setting=setting.name,
        typed=setting.words,
        command=version,
        exit=code,
        total=sum(run.by_status.values()),
        failing=run.failing,
        unsupported=run.by_status["unsupported"],
        machine={name: str(getattr(run.manifest, name)) for name in (*MACHINE, "python", "compiler")},
        differences=differences(first, run) if first else (),
        date=f"{began(run.name):%Y-%m-%d}",
        tier=run.manifest.tier,
    )


def _first(series: str, version: str) -> Closed:
    """Return the run of the first setting, with which the others are compared."""
    name = SETTINGS[0].name
    try:
        return runs.find(RESULTS / name.replace(" ", "-"), series)
    except StoreError:
        wanted = f'--only "{name}" --commands {version}'
        raise NotMeasured(
            f"{version}: others are compared with a run that is not there; run it first: {wanted}"
        ) from None


def differences(first: Closed, run: Closed) -> tuple[Difference, ...]:
    """Return the cells whose kinds differ, grouped by kinds and reason."""
    pairs = cell_outcomes.differing(first, run)
    cells = {pair.cell for pair in pairs}
    reasons: dict[CellId, str] = {}
    for row in (*views.rows(first), *views.rows(run)):
        if row.reason and (cell := CellId(*row[:4])) in cells:
            reasons[cell] = row.reason
    groups: dict[tuple[str, str, str], list[CellId]] = defaultdict(list)
    for pair in pairs:
        before, after = (o.kind if o else "absent" for o in (pair.before, pair.after))
        groups[(before, after, reasons.get(pair.cell, ""))].append(pair.cell)
    return tuple(Difference(*key, len(group), str(group[0])) for key, group in sorted(groups.items()))


def _tests(nox: str, setting: Setting, directory: Path) -> Measured:
    total = failing = worst = 0
    for paths in ("tests", "backend/tests"):  # each in processes of its own, as without arguments
        report = directory / f"{paths.replace('/', '-')}.xml"
        report.unlink(missing_ok=True)  # that of an earlier call
        log = report.with_suffix(".log")
        code = _run(nox, setting, TESTS, [f"--junitxml={report}", "-q", paths], log)
        if not report.is_file():  # pytest writes it at its end
            raise NotMeasured(f"{setting.name}: the tests in {paths} ended with {code} before the last one: {log}")
        counts = next(ET.parse(report).getroot().iter("testsuite")).attrib  # written by our own pytest
        total += int(counts["tests"])
        failing += int(counts["failures"]) + int(counts["errors"])
        worst = max(worst, code)
    cpu, today = {"cpu": machine.cpu_model()}, f"{datetime.now(timezone.utc):%Y-%m-%d}"
    return Measured(setting.name, setting.words, TESTS, worst, total, failing, machine=cpu, date=today)


def _run(nox: str, setting: Setting, session: str, arguments: Sequence[str], log: Path) -> int:
    command = [*setting.before, nox, *setting.nox, "-s", session, "--", *arguments]
    with log.open("w", encoding="utf-8") as file:
        return subprocess.run(
            command, cwd=ROOT, env=os.environ | setting.variables, stdout=file, stderr=file, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
