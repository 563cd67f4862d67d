"""Tensors that are sent to another process through ``torch.multiprocessing``."""

from __future__ import annotations

from typing import Any

import torch

from conformance.scenarios.model import NotOffered, Results, first_line, scenario
from conformance.scenarios.new_processes import results_of, started_anew

Tensors = dict[str, torch.Tensor]


@scenario(exact=True, slow=True, area="multiprocessing")
def sent_through_a_queue(device: str) -> Results:
    """A tensor that ``torch.multiprocessing`` sends to a new process arrives there with its values and strides."""
    tensors = _tensors(device)
    (received,) = results_of(device, _received, [(device, _queue_with(tensors))])
    return {**received, **{f"{name}, sent": x.detach().cpu().contiguous() for name, x in tensors.items()}}


@scenario(exact=True, slow=True, area="multiprocessing")
def shared_memory(device: str) -> Results:
    """What a new process writes to a tensor after ``share_memory_()`` is seen by the process that shares it."""
    tensor = torch.arange(6.0).to(device)
    part = tensor[1::2]
    try:
        tensor.share_memory_()
    except RuntimeError as e:
        raise NotOffered(first_line(e)) from e
    (written,) = results_of(device, _written, [(_queue_with({"whole": tensor, "part": part}),)])
    return {**written, "seen": tensor.cpu(), "seen in a part": part.cpu().contiguous()}


def _tensors(device: str) -> Tensors:
    return {
        "dense": torch.arange(6.0).to(device),
        "transposed": torch.arange(6.0).to(device).view(2, 3).t(),
        "part": torch.arange(12, device=device)[3::2],
        "halves": torch.arange(5.0).to(device).bfloat16(),
        "parameter": torch.nn.Parameter(torch.arange(3.0).to(device)),
    }


def _queue_with(tensors: Tensors) -> Any:
    """Return a queue that contains tensors. Raises NotOffered if they cannot be sent."""
    queue: Any = started_anew().SimpleQueue()
    try:
        queue.put(tensors)  # pickles in this thread; a Queue pickles in another one, where an error is lost
    except (RuntimeError, TypeError) as e:
        raise NotOffered(first_line(e)) from e
    return queue


def _received(device: str, queue: Any) -> Results:
    """Return the values, the strides and other facts of the tensors in a queue."""
    results: Results = {}
    for name, x in queue.get().items():
        facts = [x.device.type == torch.device(device).type, x.requires_grad, isinstance(x, torch.nn.Parameter)]
        results[name] = x.detach().cpu().contiguous()
        results[f"{name}, strides"] = torch.tensor([*x.stride(), *facts])
    return results


def _written(queue: Any) -> Results:
    """Write to the tensors in a queue. Return the values that this process sees."""
    tensors = queue.get()
    tensors["whole"].mul_(2)
    tensors["part"].add_(100)
    return {"written": tensors["whole"].cpu()}
