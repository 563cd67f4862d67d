"""Calls in a new thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.contexts.model import Context, How, Op


class Thread(Context):
    """The call is the first use of the device in its thread, and the thread then ends."""

    name = "thread"
    op_alone = True

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op in a new thread, and wait for the thread. On CPU, call it here."""
        import threading

        if device == torch.device("cpu"):
            return op(*args, **kwargs)
        ended: list[Any] = []
        raised: list[Exception] = []
        threads = torch.get_num_threads()

        def run() -> None:
            torch.set_num_threads(threads)  # each thread has its own number, on which the bits of CPU's sums depend
            try:
                ended.append(op(*args, **kwargs))
            except Exception as e:  # noqa: BLE001 - raised again by the caller
                raised.append(e.with_traceback(None))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if raised:
            raise raised.pop()
        return ended.pop()
