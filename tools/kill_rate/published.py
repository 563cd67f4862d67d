"""The published summary, and how a later measurement of new faults or of peers joins it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tools.kill_rate.reasons import REASONS
from tools.kill_rate.summary import tried_by

Summary = Mapping[str, Any]
_SUMS = ("tried", "false_alarms", "cpu_s")  # of a lane or a peer: they add up over measurements


def cannot_join(published: Summary, lanes: Collection[str], peers: Collection[str], torch: str) -> list[str]:
    """Return why a measurement in these lanes, with these peers and this torch, cannot join; empty if it can.

    A peer that has tried a part of the published faults may be left out.
    """
    wrong = []
    if set(published["lanes"]) != set(lanes):
        wrong.append(f"its lanes are {_listed(published['lanes'])}, not {_listed(lanes)}")
    if not set(whole_peers(published)) <= set(peers) <= set(published["peers"]):
        wrong.append(f"its peers are {_listed(published['peers'])}, not {_listed(peers)}")
    if published["torch"] != torch:
        wrong.append(f"its torch is {published['torch']}, not {torch}")
    return wrong


def whole_peers(published: Summary) -> list[str]:
    """Return the peers that have tried every fault of the published summary."""
    return [name for name in published["peers"] if len(tried_by(published, name)) == len(published["detail"])]


def joined(published: Summary, made: Summary, faults: Sequence[str]) -> dict[str, Any]:
    """Return a summary of both measurements, with the faults in this order. Faults not among these are left out.

    Seconds, CPU seconds and false alarms add up. A run without a fault that both measurements contain counts once.
    Raises ValueError if they have other lanes, peers or versions of torch.
    """
    if wrong := cannot_join(published, made["lanes"], made["peers"], made["torch"]):
        raise ValueError(f"the measurement cannot join the published summary: {'; '.join(wrong)}")
    found = dict(published) | {
        "lanes": _added(published["lanes"], made["lanes"]),
        "peer_totals": _added(published["peer_totals"], made["peer_totals"]),
        "seconds": published["seconds"] + made["seconds"],
        "detail": published["detail"] | made["detail"],
        "survivors": [*published["survivors"], *made["survivors"]],
    }
    return restricted(found, faults)


def with_peers(published: Summary, made: Summary) -> dict[str, Any]:
    """Return the published summary with the results of a measurement of peers alone.

    A peer's result for a fault replaces its earlier result. Its seconds and false alarms replace the earlier numbers,
    too, unless the measurement leaves out faults that the peer has tried before: then the numbers add up. Raises
    ValueError for a fault that is not covered.
    """
    if unknown := [fault for fault in made["detail"] if fault not in published["detail"]]:
        raise ValueError(f"the published summary does not cover {_listed(unknown)}")
    totals = dict(published["peer_totals"])
    for name, of in made["peer_totals"].items():
        renews = set(tried_by(published, name)) <= set(tried_by(made, name))
        totals[name] = of if renews else _sum(totals[name], of)
    detail = {fault: rows | made["detail"].get(fault, {}) for fault, rows in published["detail"].items()}
    found = dict(published) | {
        "peer_totals": totals,
        "detail": detail,
        "seconds": published["seconds"] + made["seconds"],
    }
    return restricted(found, list(detail))


def restricted(published: Summary, faults: Iterable[str]) -> dict[str, Any]:
    """Return a summary without faults that are not among these, in this order. The times that they took remain."""
    detail = {fault: published["detail"][fault] for fault in faults if fault in published["detail"]}
    lanes = _counted(published["lanes"], detail)
    peers = _counted(published["peer_totals"], detail)
    own = {s["fault"]: s["found_by_own_tests"] for s in published["survivors"]}
    left = [fault for fault, rows in detail.items() if not any(_finds(name, rows) for name in lanes)]
    return {
        "faults": len(detail),
        "killed": len(detail) - len(left),
        "survivors": [{"fault": f, "why": REASONS.get(f, ""), "found_by_own_tests": own.get(f)} for f in left],
        "false_alarms": sum(t["false_alarms"] for t in lanes.values()),
        "peers": {name: t["killed"] for name, t in peers.items()},
        "lanes": lanes,
        "peer_totals": peers,
        "torch": published["torch"],
        "seconds": published["seconds"],
        "cpu_s": sum(t["cpu_s"] for t in (*lanes.values(), *peers.values())),
        "detail": detail,
    }


def _added(published: Summary, made: Summary) -> dict[str, Any]:
    """Return the sums of the totals of lanes or of peers. Fault-free runs in both summaries count once."""
    return {name: _sum(totals, made[name]) if name in made else totals for name, totals in published.items()}


def _sum(published: Summary, made: Summary) -> dict[str, Any]:
    known = published.get("clean", [])
    twice = [run for run in made["clean"] if run in known]
    sums = {key: round(published[key] + made[key] - sum(run[key] for run in twice)) for key in _SUMS}
    return dict(published) | sums | {"clean": [*known, *(run for run in made["clean"] if run not in known)]}


def _counted(totals: Summary, detail: Summary) -> dict[str, Any]:
    """Return the totals with the number of faults that each lane or peer finds."""
    return {
        name: dict(of) | {"killed": sum(_finds(name, rows) for rows in detail.values())} for name, of in totals.items()
    }


def _finds(name: str, rows: Summary) -> bool:
    return bool(rows.get(name, {}).get("killed_by"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
