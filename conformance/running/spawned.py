"""What a spawned child runs: it builds the suite that it is told of, and answers the runner's requests.

``python -m conformance.running.spawned PARENT REQUESTS REPLIES LOG PAGE``: the parent's process id, then open file
descriptors.
"""

from __future__ import annotations

import sys
from typing import Any

from conformance.running.child import live, tie_to
from conformance.running.progress import Progress


def main(parent: int, requests: int, replies: int, log: int, page: int) -> None:
    """Answer until the parent closes the pipe; the first request is the suite's recipe."""
    tie_to(parent)
    server: Any = None

    def serve(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal server
        if server is None:
            from conformance.running.protocol import Server
            from conformance.suite import Suite

            suite = Suite.made_from(request)
            suite.prepare()
            server = Server(suite, Progress(page))
            return {}
        reply: dict[str, Any] = server(request)
        return reply

    live(serve, requests, replies, log)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
