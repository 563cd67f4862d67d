"""The main module of a spawned child, which makes the plan from its first request and answers the runner.

``python -m conformance.running.spawned PARENT REQUESTS REPLIES LOG PAGE``: the parent's process id, then open file
descriptors.
"""

from __future__ import annotations

import sys
from typing import Any

from conformance.running.child import live, tie_to
from conformance.running.progress import Progress


def main(parent: int, requests: int, replies: int, log: int, page: int) -> None:
    """Answer requests until the parent closes the pipe. The first request is the plan's recipe."""
    tie_to(parent)
    server: Any = None

    def serve(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal server
        if server is None:
            from conformance.plan.plan import Plan
            from conformance.running.cell_runner import CellRunner
            from conformance.running.protocol import Server

            work = CellRunner(Plan.made_from(request))
            work.prepare()
            server = Server(work, Progress(page))
            return {}
        reply: dict[str, Any] = server(request)
        return reply

    live(serve, requests, replies, log)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
