"""Tasks on a Ray cluster. The only module that imports Ray, and only when a cluster is used."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.cluster import node
from conformance.cluster.inbox import ATTEMPTS, Inbox, died
from conformance.cluster.model import Begun, ClusterError, Ended, News, Order, State
from conformance.lanes.matrix import Resources
from conformance.support.lines import first_line

LOCAL = "local"
_ADDRESS = re.compile(r"(?:ray://)?(?P<host>[^\s/:]+|\[[^\s/]+\]):(?P<port>\d{1,5})")
_ANSWER = 5.0  # seconds that a connection may take
_MB = 2**20


def host_and_port(address: str) -> tuple[str, int]:
    """Return the host and the port of ``ray://HOST:PORT`` or ``HOST:PORT``. Raises ClusterError."""
    found = _ADDRESS.fullmatch(address)
    if not found or not 0 < int(found["port"]) < 65536:
        raise ClusterError(f"--cluster: {address!r} is no address; expected ray://HOST:PORT, HOST:PORT or {LOCAL!r}")
    return found["host"].strip("[]"), int(found["port"])


def check_answers(address: str) -> None:
    """Raise ClusterError if nothing listens at the address. Ray itself would try for minutes."""
    host, port = host_and_port(address)
    try:
        socket.create_connection((host, port), timeout=_ANSWER).close()
    except OSError as e:
        advice = "is a head node running (`ray start --head --ray-client-server-port PORT`)?"
        raise ClusterError(f"--cluster: no Ray answers at {address}: {e.strerror or e}; {advice}") from e


def ray_module() -> Any:
    """Import Ray and return its module. Raises ClusterError if Ray is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] != "ray":
            raise
        raise ClusterError(
            "--cluster needs Ray, which is not installed; install it here and on each node with: "
            "pip install 'op-conformance[cluster]'"
        ) from e
    return ray


class RayCluster:
    """A Ray cluster. Ray chooses the node of each task, and repeats a task whose worker or node dies."""

    def __init__(self, address: str) -> None:
        """Connect to ``ray://HOST:PORT`` or ``HOST:PORT``, or with ``local`` start Ray here. Raises ClusterError."""
        if address != LOCAL:
            host_and_port(address)  # a wrong address is reported before a missing Ray
        self._ray = ray = ray_module()
        if address != LOCAL:
            check_answers(address)
        settings = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if address == LOCAL:
                ray.init(include_dashboard=False, **settings)
            else:
                ray.init(address=address, **settings)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as e:
            raise ClusterError(f"--cluster: {address}: {refusal(str(e))}") from e
        # If the node of the inbox dies, so does the run: it is the node of this process or, for a client, the head.
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._inbox = ray.remote(Inbox).options(num_cpus=0, scheduling_strategy=here).remote()
        self._task = ray.remote(_task)
        self._running: dict[Any, Order] = {}
        self._durations: dict[str, Any] = {}

    def lacking(self, lane: str, needed: Resources) -> str:
        """Return why no node can ever run a shard of the lane, "" if one can."""
        alive = [found for found in self._ray.nodes() if found["Alive"]]
        wanted = _requests(needed)
        if any(all(n["Resources"].get(name, 0) >= count for name, count in wanted.items()) for n in alive):
            return ""
        have = "; ".join(f"{n['NodeManagerHostname']} has {_shown(n['Resources'], wanted)}" for n in alive)
        return f"lane {lane}: a shard needs {_shown(wanted, wanted)}, and no node has them: {have}"

    def submit(self, order: Order, durations: Mapping[str, bytes]) -> None:
        """Add a task. ``durations``: see :func:`conformance.cluster.node.run`."""
        if order.split_by not in self._durations:
            self._durations[order.split_by] = self._ray.put(dict(durations))
        needed = _requests(order.resources)
        task = self._task.options(
            name=order.key, num_cpus=needed.pop("CPU"), memory=needed.pop("memory"), num_gpus=needed.pop("GPU", 0),
            resources=needed, max_retries=ATTEMPTS, retry_exceptions=[node.ProcessDied],
        ).remote(order, self._durations[order.split_by], self._inbox)  # fmt: skip
        self._running[task] = order

    def wait(self, seconds: float) -> list[tuple[Order, Ended]]:
        """Wait until a task ends, at most ``seconds``. Return the tasks that ended."""
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds) if self._running else ([], [])
        return [(self._running[task], self._result(task, self._running.pop(task))) for task in done]

    def news(self) -> Sequence[News]:
        """Return the records that came since the last call."""
        found: Sequence[News] = self._ray.get(self._inbox.take.remote())
        return found

    def stop(self) -> None:
        """Make the running shards close their results, and let no other shard begin."""
        self._ray.get(self._inbox.stop.remote())

    def close(self) -> None:
        """End the tasks that are left, and disconnect."""
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._ray.shutdown()

    def _result(self, task: Any, order: Order) -> Ended:
        errors = self._ray.exceptions
        try:
            found: Ended = self._ray.get(task)
            return found
        except errors.RayTaskError as e:
            if isinstance(e.cause, node.ProcessDied):
                return Ended(State.FAILED, reason=f"{self._died(order)}; the last time: {e.cause}")
            return Ended(State.FAILED, reason=f"the task failed: {first_line(str(e.cause or e))}")
        except errors.RayError as e:
            return Ended(State.FAILED, reason=f"{self._died(order)}; Ray says: {first_line(str(e))}")

    def _died(self, order: Order) -> str:
        return died(self._ray.get(self._inbox.nodes.remote(order.key)))


def _task(order: Order, durations: dict[str, bytes], inbox: Any) -> Ended:
    """Run one order, in a worker of Ray."""
    import ray

    class _Mail:
        def begin(self, key: str, where: str) -> Begun:
            begun: Begun = ray.get(inbox.begin.remote(key, where))
            return begun

        def add(self, news: News) -> bool:
            return bool(ray.get(inbox.add.remote(news)))

    where = f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:6]}"
    return node.run(order, durations, _Mail(), where)


def _requests(needed: Resources) -> dict[str, float]:
    """Return the resources by Ray's names; memory in bytes."""
    return {"CPU": needed.cpus, "memory": needed.memory_mb * _MB, **dict(needed.devices)}


def _shown(have: Mapping[str, float], wanted: Mapping[str, float]) -> str:
    words = []
    for name in wanted:
        amount = have.get(name, 0)
        words.append(f"memory {amount / _MB:.0f} MB" if name == "memory" else f"{name} {amount:g}")
    return ", ".join(words)


def refusal(text: str) -> str:
    """Return Ray's connection error as one line, with advice if the versions differ."""
    line = " ".join(text.split())
    if "version mismatch" in line.casefold():
        return f"{line}; use the same Ray and Python here as on the cluster"
    return line
