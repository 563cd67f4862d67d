"""The test suites of other projects that look for the same faults, and the environments in which they run."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from conformance.lanes.matrix import Lane, Matrix


@dataclass(frozen=True, slots=True)
class Peer:
    """A suite of another project. With ``packages`` it has an environment above that of its torch."""

    module: str  # in tools.kill_rate: with `checks`, or with `collect` where a session has to last; see worker.use
    torch: str = ""  # the versions that it allows; "" if it runs on any
    packages: tuple[str, ...] = ()  # exact, so that the number on the page can be measured again
    parts: int = 1  # processes that share its items; with many items, so that an interruption loses less


PEERS = {
    "opinfo_device_checks": Peer("opinfo"),
    "plain_allclose": Peer("allclose"),
    "torchcts": Peer("torchcts", torch=">=2.7,<2.12.2", packages=("torchcts==0.4.1", "psutil==7.1.3"), parts=8),
}


def environment_of(name: str) -> str:
    """Return the session that creates the environment of a peer with packages of its own."""
    return f"peer-{name}"


def lane_of(peer: Peer, m: Matrix, first: Lane) -> Lane:
    """Return the lane of a peer: ``first`` if the peer allows its torch, else a like lane of the newest allowed torch.

    Raises LookupError if the matrix has no such torch.
    """
    allowed = SpecifierSet(peer.torch)
    torches = [t for t in m.torches if not t.index and t.version in allowed]
    if first.torch in torches:
        return first
    for torch in reversed(torches):
        for lane in m.lanes():
            if (lane.torch, lane.environment, lane.build) == (torch, first.environment, m.builds[0]):
                return lane
    raise LookupError(f"no torch of the matrix of {m.backend} is {peer.torch}")
