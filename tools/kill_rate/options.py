"""The options of the command line: the faults, lanes and peers to measure, and whether to publish the result."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from conformance.lanes import matrix
from conformance.support.suggestions import unknown
from tools.faults import with_results
from tools.kill_rate.peers import PEERS
from tools.kill_rate.published import cannot_join, whole_peers
from tools.kill_rate.session import Session, measured, short
from tools.kill_rate.summary import unmeasured

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "kill-rate.json"
NONE = "none"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the faults, lanes and peers to measure."""

    faults: tuple[str, ...]
    lanes: tuple[str, ...]
    peers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """The request. ``session`` has no faults if none is left to measure. ``every``: all faults, in their order."""

    session: Session
    every: tuple[str, ...]
    publish: bool
    unmeasured: bool  # only the faults that the published summary lacks, which they join when published


def parse(description: str | None, arguments: list[str]) -> Options:
    """Return the request. Exits for an unknown name, and for a measurement that ``--publish`` could not publish."""
    given = _parser(description).parse_args(arguments)
    found = matrix.load(given.matrix)
    lanes = {short(lane, found): lane for lane in measured(found)}
    every = tuple(with_results(ROOT / found.project))
    if given.unmeasured and given.lanes == NONE:
        sys.exit(
            "kill-rate: --lanes none is for faults that lanes have tried, and --unmeasured for those that none has"
        )
    if given.unmeasured:
        names = _unmeasured(given, every, tuple(lanes), found.main_torch.version)
    elif given.lanes == NONE:
        names = _of_peers(given, every)
    else:
        names = _named(given, every, tuple(lanes))
        _check_whole(given.publish, names, every, tuple(lanes))
    session = Session(
        matrix=found,
        faults=names.faults,
        lanes=tuple(lanes[name] for name in names.lanes),
        peers=names.peers,
        root=ROOT,
        results=given.results,
        workers=given.workers,
        own_tests=not given.skip_own_tests,
        sample=sample(names.faults, given.sample, given.seed) if given.sample and names.lanes else None,
    )
    return Options(session, every, given.publish, given.unmeasured)


def peers_of(arguments: list[str]) -> tuple[str, ...]:
    """Return the peers that a command line selects; some need an environment. Nothing else in it is checked."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--peers", default="")
    parser.add_argument("--unmeasured", action="store_true")
    given, _ = parser.parse_known_args(arguments)
    default = whole_peers(published()) if given.unmeasured else PEERS
    return tuple(name for name in PEERS if name in (given.peers.split(",") if given.peers else default))


def published() -> dict[str, Any]:
    """Return the published summary. Exits if there is none."""
    if not PUBLISHED.is_file():
        sys.exit(
            f"kill-rate: there is no {PUBLISHED} that the measurement could join: measure all faults in all lanes first"
        )
    made: dict[str, Any] = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    return made


def chosen(what: str, text: str, there: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in a comma-separated text, all if it is empty. Exits for an unknown name."""
    names = tuple(text.split(",")) if text else there
    for name in names:
        if name not in there:
            sys.exit(unknown(what, name, there))
    return names


def new_faults(text: str, made: Mapping[str, Any], every: tuple[str, ...], file: str) -> tuple[str, ...]:
    """Return the faults that the published summary ``made`` lacks, or those of them that ``text`` names.

    Exits for an unknown name, and for a fault that the summary, which ``file`` names, covers.
    """
    missing = tuple(unmeasured(made, every))
    if not text:
        return missing
    named = chosen("fault", text, every)
    if known := [fault for fault in named if fault not in missing]:
        sys.exit(
            f"{file} covers {', '.join(known)} already, and --unmeasured measures other faults only. "
            "Leave out --unmeasured to measure a fault again"
        )
    return named


def sample(faults: Sequence[str], size: int, seed: int) -> tuple[str, ...]:
    """Return ``size`` of the faults, in their order. A larger sample of the same seed contains a smaller one."""
    drawn = list(faults)
    Random(seed).shuffle(drawn)
    return tuple(fault for fault in faults if fault in set(drawn[:size]))


def add_publish(parser: argparse.ArgumentParser) -> None:
    """Add ``--publish`` to the parser of a tool that also has ``--unmeasured``."""
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write the summary where the docs take it from; with --unmeasured, add it to what is there",
    )


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kill-rate", description=description)
    parser.add_argument("--matrix", type=Path, default=ROOT / "matrices" / "refnpu.toml")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "kill-rate", help="where trials are kept")
    parser.add_argument("--workers", type=int, default=2, help="processes that share a step")
    parser.add_argument("--lanes", default="", help="only these, e.g. malloc,guard; none: the peers alone")
    parser.add_argument("--faults", default="", help="only these")
    parser.add_argument("--peers", default="", help="only these; none: the suite alone")
    parser.add_argument("--sample", type=int, default=0, help="let peers look for this many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--unmeasured",
        action="store_true",
        help="only faults that the published summary lacks, in its lanes and with its peers unless others are given",
    )
    parser.add_argument("--skip-own-tests", action="store_true", help="do not run the backend's tests with survivors")
    add_publish(parser)
    return parser


def _named(given: argparse.Namespace, every: tuple[str, ...], lanes: tuple[str, ...]) -> Names:
    """Return the names that the options give, or all names where an option is not given."""
    return Names(chosen("fault", given.faults, every), chosen("lane", given.lanes, lanes), _peers(given))


def _peers(given: argparse.Namespace) -> tuple[str, ...]:
    return () if given.peers == NONE else chosen("peer", given.peers, tuple(PEERS))


def _of_peers(given: argparse.Namespace, every: tuple[str, ...]) -> Names:
    """Return the peers, without lanes, and the faults given: by default all that the published summary covers.

    Exits if there is no peer, and if a fault could not be published because no lane has tried it.
    """
    there = published()["detail"]
    covered = tuple(fault for fault in every if fault in there)
    faults = chosen("fault", given.faults, every) if given.faults else covered
    if given.publish and (others := [fault for fault in faults if fault not in covered]):
        sys.exit(
            f"kill-rate: {PUBLISHED.name} does not cover {', '.join(others)}: no lane has tried them. Use --unmeasured"
        )
    if not (peers := _peers(given)):
        sys.exit("kill-rate: --lanes none and --peers none leave nothing that looks for a fault")
    return Names(sample(faults, given.sample, given.seed) if given.sample else faults, (), peers)


def _check_whole(publish: bool, names: Names, every: tuple[str, ...], lanes: tuple[str, ...]) -> None:
    """Exit if a part of the faults or of the lanes would replace the published summary."""
    if publish and (set(names.faults) != set(every) or set(names.lanes) != set(lanes)):
        sys.exit(
            f"kill-rate: --publish replaces {PUBLISHED.name}, which covers all faults in all lanes, and --faults or "
            "--lanes leaves some out. Leave out --publish; or add --unmeasured, which adds new faults to that file"
        )


def _unmeasured(given: argparse.Namespace, every: tuple[str, ...], lanes: tuple[str, ...], torch: str) -> Names:
    """Return the faults that the published summary lacks, and its lanes and peers unless others are given.

    The default peers are those that have tried every fault of the summary.

    Exits if a given fault is not one of these, and if ``--publish`` could not add the measurement to that summary.
    """
    there = published()
    faults = new_faults(given.faults, there, every, PUBLISHED.name)
    given.lanes = given.lanes or ",".join(there["lanes"])
    given.peers = given.peers or ",".join(whole_peers(there)) or NONE
    names = _named(given, every, lanes)
    if given.publish and (wrong := cannot_join(there, names.lanes, names.peers, torch)):
        sys.exit(
            f"kill-rate: the measurement cannot be added to {PUBLISHED.name}: {'; '.join(wrong)}. "
            "Leave out --lanes and --peers, or measure all faults without --unmeasured"
        )
    # The first lane is that of the published summary: the later steps run in it.
    ordered = tuple(name for name in dict.fromkeys((*there["lanes"], *names.lanes)) if name in names.lanes)
    return Names(faults, ordered, names.peers)
