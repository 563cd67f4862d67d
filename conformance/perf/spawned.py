"""The main module of a spawned child of a measured run, for backends that cannot be used after a fork.

``python -m conformance.perf.spawned PARENT REQUESTS REPLIES LOG``: the parent's process id, then open file descriptors.
"""

from __future__ import annotations

import sys
from typing import Any

from conformance.running.child import live, tie_to


def main(parent: int, requests: int, replies: int, log: int) -> None:
    """Answer requests until the parent closes the pipe. The first request is the meter's recipe."""
    tie_to(parent)
    serve: Any = None

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal serve
        if serve is None:
            from conformance.perf.meter import Meter

            serve = Meter.made_from(request).serve
            return {}
        reply: dict[str, Any] = serve(request)
        return reply

    live(answer, requests, replies, log)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
