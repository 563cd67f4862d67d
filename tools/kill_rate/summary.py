"""The summary of all trials: killed faults, survivors with their reasons, false alarms, peers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.kill_rate.reasons import REASONS
from tools.kill_rate.trial import CLEAN, Trial


@dataclass(frozen=True, slots=True)
class Hunt:
    """The trials of one lane or of one peer."""

    name: str
    trials: tuple[Trial, ...]
    peer: bool = False

    def of(self, fault: str) -> list[Trial]:
        return [t for t in self.trials if t.fault == fault]


@dataclass(frozen=True, slots=True)
class Facts:
    """The versions and settings of the measurement."""

    faults: tuple[str, ...]
    torch: str
    seconds: int


def summary(facts: Facts, hunts: Sequence[Hunt], own_tests: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the JSON-able summary.

    ``own_tests``: fault that survives the suite -> failing test of the backend; None if these tests did not run.
    """
    lanes = [h for h in hunts if not h.peer]
    peers = [h for h in hunts if h.peer]
    detail = {fault: {h.name: row for h in hunts if (row := _row(h.of(fault)))} for fault in facts.faults}
    names = {h.name for h in lanes}
    killed = [f for f, rows in detail.items() if any(_kills(rows, names))]
    return {
        "faults": len(facts.faults),
        "killed": len(killed),
        "survivors": [_survivor(f, own_tests) for f in facts.faults if f not in killed],
        "false_alarms": sum(_alarms(h) for h in lanes),
        "peers": {h.name: _killed_by(h) for h in peers},
        "lanes": {h.name: _totals(h) for h in lanes},
        "peer_totals": {h.name: _totals(h) for h in peers},
        "torch": facts.torch,
        "seconds": facts.seconds,
        "cpu_s": round(sum(t.cpu_s for h in hunts for t in h.trials)),
        "detail": detail,
    }


def lacking(made: Mapping[str, Any], faults: Iterable[str]) -> list[str]:
    """Return the outdated parts of a summary: faults that are not in ``faults``, and survivors that a lane did not try.

    A measurement tries a fault in every lane, unless a lane finds it. Faults that the summary does not cover are
    :func:`unmeasured`. Peers may have tried only a part of the faults.
    """
    wrong = [f"{name} is no fault any more" for name in sorted(set(made["detail"]) - set(faults))]
    for fault, rows in made["detail"].items():
        if _kills(rows, set(made["lanes"])):
            continue
        wrong += [f"{fault} was not tried by {name}" for name in sorted(set(made["lanes"]) - set(rows))]
    return wrong


def tried_by(made: Mapping[str, Any], name: str) -> list[str]:
    """Return the faults that a lane or a peer looked for."""
    return [fault for fault, rows in made["detail"].items() if name in rows]


def unmeasured(made: Mapping[str, Any], faults: Iterable[str]) -> list[str]:
    """Return the faults that a summary does not cover, in their order."""
    return [name for name in faults if name not in made["detail"]]


def _row(trials: Sequence[Trial]) -> dict[str, Any] | None:
    """Return the result of one fault in one lane, over all stages."""
    if not trials:
        return None
    last = next((t for t in trials if t.killed), trials[-1])
    row: dict[str, Any] = {"killed_by": "", "where": ""}
    if last.killed:
        row = {"killed_by": last.killed.check, "where": last.killed.where}
    return row | {"tried": sum(t.tried for t in trials), "seconds": round(sum(t.seconds for t in trials), 1)}


def _kills(rows: Mapping[str, Mapping[str, Any]], names: set[str]) -> list[str]:
    return [name for name, row in rows.items() if name in names and row["killed_by"]]


def _survivor(fault: str, own_tests: Mapping[str, str] | None) -> dict[str, str | None]:
    found = None if own_tests is None else own_tests.get(fault, "")
    return {"fault": fault, "why": REASONS.get(fault, ""), "found_by_own_tests": found}


def _alarms(hunt: Hunt) -> int:
    return sum(len(t.findings) for t in hunt.of(CLEAN))


def _killed_by(hunt: Hunt) -> int:
    return len({t.fault for t in hunt.trials if t.fault != CLEAN and t.killed})


def _totals(hunt: Hunt) -> dict[str, Any]:
    return {
        "killed": _killed_by(hunt),
        "false_alarms": _alarms(hunt),
        "tried": sum(t.tried for t in hunt.of(CLEAN)),
        "cpu_s": round(sum(t.cpu_s for t in hunt.trials)),
        "clean": [_run(t) for t in hunt.of(CLEAN)],
    }


def _run(clean: Trial) -> dict[str, Any]:
    """Return the numbers of one run without a fault. Its times, in milliseconds, tell it from any other run."""
    return {
        "tried": clean.tried, "false_alarms": len(clean.findings), "seconds": clean.seconds, "cpu_s": clean.cpu_s,
    }  # fmt: skip
