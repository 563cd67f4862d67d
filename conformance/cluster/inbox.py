"""The inbox of a cluster run: the attempts at each shard, and the records that the tasks send. Lives on one node."""

from __future__ import annotations

from conformance.cluster.model import Begun, News

ATTEMPTS = 3  # at a shard whose worker or node dies


class Inbox:
    """The inbox. It keeps only records of the latest attempt at a shard, so that nothing is counted twice."""

    def __init__(self, attempts: int = ATTEMPTS) -> None:
        """``attempts``: the most attempts at a shard."""
        self._most = attempts
        self._nodes: dict[str, list[str]] = {}  # of each attempt, by the key of the order
        self._news: list[News] = []
        self._stopped = False

    def begin(self, key: str, node: str) -> Begun:
        """Note that a task begins on a node, and return its attempt. A task begins again if its worker died."""
        if self._stopped:
            return Begun(0)
        before = self._nodes.setdefault(key, [])
        if len(before) >= self._most:
            return Begun(0, died(before))
        before.append(node)
        self._news.append(News(key, len(before), node, ()))
        return Begun(len(before))

    def add(self, news: News) -> bool:
        """Keep the records of the latest attempt. Return whether the task goes on."""
        if news.attempt != len(self._nodes.get(news.key, ())):
            return False  # the node was taken for dead, and another node has the shard
        if news.lines:
            self._news.append(news)
        return not self._stopped

    def take(self) -> list[News]:
        """Return the records that came since the last call."""
        news, self._news = self._news, []
        return news

    def nodes(self, key: str) -> list[str]:
        """Return the node of each attempt."""
        return self._nodes.get(key, [])

    def stop(self) -> None:
        """Make running tasks end, and let no other task begin."""
        self._stopped = True


def died(nodes: list[str]) -> str:
    """Return the reason why a shard is given up, from the node of each attempt."""
    return f"the process that ran the shard died {len(nodes)} times, on {', '.join(nodes)}"
