"""``python -m tools.kill_rate``: measures which faults are found. Continues an interrupted measurement."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from conformance.lanes import matrix
from tools.faults import with_results
from tools.kill_rate.session import PEERS, Session, measured, short

ROOT = Path(__file__).parents[2]
INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Return 0 if every survivor has a reason and there is no false alarm, else 1."""
    session, publish = _session(arguments)
    try:
        made = session.run()
    except LookupError as e:
        sys.exit(f"kill-rate: {e}")
    except KeyboardInterrupt:
        print(f"interrupted; {session.results} keeps what was measured, and the same command goes on from there")
        return INTERRUPTED
    print(closing(made))
    if publish:
        (ROOT / "docs" / "kill-rate.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return 1 if made["false_alarms"] or any(not s["why"] for s in made["survivors"]) else 0


def closing(made: dict[str, Any]) -> str:
    """Return the printed text."""
    lines = [f"{made['killed']} of {made['faults']} faults killed, {made['false_alarms']} false alarms"]
    lines += [f"survives: {s['fault']}: {s['why'] or 'nobody has said why'}" for s in made["survivors"]]
    lines += [f"{name}: {n} of {made['faults']}" for name, n in made["peers"].items()]
    return "\n".join([*lines, f"{made['cpu_s']} s of CPU, {made['seconds']} s"])


def _session(arguments: list[str]) -> tuple[Session, bool]:
    """Return the options: what to measure, and whether to publish it in the docs."""
    parser = argparse.ArgumentParser(prog="kill-rate", description=__doc__)
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrices" / "refnpu.toml")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "kill-rate", help="where trials are kept")
    parser.add_argument("--workers", type=int, default=2, help="lanes at a time")
    parser.add_argument("--lanes", default="", help="only these, e.g. malloc,guard")
    parser.add_argument("--faults", default="", help="only these")
    parser.add_argument("--peers", default="", help="only these; none: the suite alone")
    parser.add_argument("--skip-own-tests", action="store_true", help="do not run the backend's tests with survivors")
    parser.add_argument("--publish", action="store_true", help="write the summary where the docs take it from")
    given = parser.parse_args(arguments)
    found = matrix.load(given.matrix)
    lanes = {short(lane, found): lane for lane in measured(found)}
    faults = tuple(with_results(ROOT / found.project))
    session = Session(
        matrix=found,
        faults=chosen("fault", given.faults, faults),
        lanes=tuple(lanes[name] for name in chosen("lane", given.lanes, tuple(lanes))),
        peers=() if given.peers == "none" else chosen("peer", given.peers, tuple(PEERS)),
        root=ROOT,
        results=given.results,
        workers=given.workers,
        own_tests=not given.skip_own_tests,
    )
    return session, given.publish


def chosen(what: str, text: str, there: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a comma-separated text, all if it is empty. Exits for an unknown name."""
    from conformance.support.suggestions import unknown

    names = tuple(text.split(",")) if text else there
    for name in names:
        if name not in there:
            sys.exit(unknown(what, name, there))
    return names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
