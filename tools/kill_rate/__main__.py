"""``python -m tools.kill_rate``: measures which faults are found. Continues an interrupted measurement."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tools.kill_rate import options
from tools.kill_rate.published import joined, restricted, with_peers
from tools.kill_rate.summary import tried_by

INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Return 0 if every survivor of lanes has a reason and no lane has a false alarm, else 1."""
    given = options.parse(__doc__, arguments)
    if not given.session.faults:
        return _nothing_left(given)
    try:
        made = given.session.run()
    except LookupError as e:
        sys.exit(f"kill-rate: {e}")
    except KeyboardInterrupt:
        print(f"interrupted; {given.session.results} keeps what was measured, and the same command goes on from there")
        return INTERRUPTED
    print(closing(made))
    if given.publish:
        _write(_summary(given, made))
    alone = not made["lanes"]  # peers only: faults that they miss need no reason
    return 1 if not alone and (made["false_alarms"] or any(not s["why"] for s in made["survivors"])) else 0


def closing(made: dict[str, Any]) -> str:
    """Return the printed text."""
    lines = [f"{made['killed']} of {made['faults']} faults killed, {made['false_alarms']} false alarms"]
    lines += [f"survives: {s['fault']}: {s['why'] or 'nobody has said why'}" for s in made["survivors"]]
    peers = [f"{name}: {n} of {len(tried_by(made, name))}" for name, n in made["peers"].items()]
    return "\n".join([*(lines if made["lanes"] else ()), *peers, f"{made['cpu_s']} s of CPU, {made['seconds']} s"])


def _summary(given: options.Options, made: dict[str, Any]) -> dict[str, Any]:
    """Return the summary to publish."""
    if not made["lanes"]:
        return with_peers(options.published(), made)
    return joined(options.published(), made, given.every) if given.unmeasured else made


def _nothing_left(given: options.Options) -> int:
    """Print that the published summary covers all faults. Publishing leaves out those that are no faults any more."""
    print(f"{options.PUBLISHED.name} covers all {len(given.every)} faults: nothing to measure")
    if given.publish:
        _write(restricted(options.published(), given.every))
    return 0


def _write(made: Mapping[str, Any]) -> None:
    options.PUBLISHED.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
