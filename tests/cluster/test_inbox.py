"""The inbox of a cluster run: attempts at a shard, and whose records count."""

from __future__ import annotations

from conformance.cluster.inbox import Inbox
from conformance.cluster.model import News

KEY = "lane 1/2"


def test_records_of_an_attempt_that_was_replaced_are_refused() -> None:
    inbox = Inbox()
    first, second = inbox.begin(KEY, "a"), inbox.begin(KEY, "b")
    assert not inbox.add(News(KEY, first.attempt, "a", ("late",)))
    assert inbox.add(News(KEY, second.attempt, "b", ("here",)))
    assert [news.lines for news in inbox.take()] == [(), (), ("here",)]


def test_records_are_taken_once() -> None:
    inbox = Inbox()
    inbox.begin(KEY, "a")
    assert [news.attempt for news in inbox.take()] == [1]
    assert inbox.take() == []


def test_a_shard_may_begin_so_often_and_then_is_refused_with_its_nodes() -> None:
    inbox = Inbox(attempts=2)
    assert [inbox.begin(KEY, node).attempt for node in "ab"] == [1, 2]
    assert inbox.begin(KEY, "c").attempt == 0
    assert inbox.begin(KEY, "c").reason == "the process that ran the shard died 2 times, on a, b"
    assert inbox.begin("lane 2/2", "c").attempt == 1


def test_after_a_stop_tasks_end_and_none_begins() -> None:
    inbox = Inbox()
    inbox.begin(KEY, "a")
    inbox.stop()
    assert not inbox.add(News(KEY, 1, "a", ("the last",)))
    assert inbox.begin("lane 2/2", "a").attempt == 0
    assert inbox.take()[-1].lines == ("the last",)
