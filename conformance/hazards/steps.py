"""Hazards of running a part of the queued work: values that are saved while other work is queued, and donated memory.

A lazy backend runs the work that a saved value needs, and leaves the rest for the step. This work may overwrite a
value that the rest has yet to read.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable

import torch

from conformance.hazards.bench import Bench, difference
from conformance.hazards.model import Found, Needs, hazard

BY_TORCH, BY_ADAPTER = "torch.save", "the adapter's save"
Saving = Callable[[Bench], Found]


def saving(earlier: str, later: str) -> Callable[[Saving], Saving]:
    """Register a hazard that saves values: in the backend's own way if it has one, and then with ``torch.save``.

    The backend's own way comes first: a backend that keeps compiled programs may reuse a program of ``torch.save``,
    which has other inputs to donate.
    """

    def register(program: Saving) -> Saving:
        @functools.wraps(program)
        def run(bench: Bench) -> Found:
            for way in (BY_ADAPTER, BY_TORCH) if bench.capabilities.saves else (BY_TORCH,):
                bench.saves_by = way
                yield from program(bench)

        return hazard(earlier, later)(run)

    return register


def saved(bench: Bench, value: object) -> object:
    """Save a value in the way of the running program, and return the value in the file."""
    file = io.BytesIO()
    if bench.saves_by == BY_TORCH:
        torch.save(value, file)
    else:
        bench.capabilities.save(value, file)
    file.seek(0)
    return torch.load(file, map_location="cpu")


def stored(bench: Bench, tensor: torch.Tensor) -> torch.Tensor:
    """Save a tensor, and return the tensor in the file."""
    found = saved(bench, tensor)
    assert isinstance(found, torch.Tensor)
    return found


@saving("a queued kernel that reads the old value", "the save of the new value and the step")
def saving_one_of_several_queued_tensors(bench: Bench) -> Found:
    t0, t1 = bench.full(1), bench.full(2)
    bench.busy()
    t2 = t0 + t1
    t1.add_(1)
    yield difference("the stored tensor", stored(bench, t1), 3)
    bench.step()
    yield difference("the sum of the old values", t2, 3)
    yield difference("the saved tensor", t1, 3)


@saving("a queued kernel that reads the old value in several arguments", "the save of the new value and the step")
def saving_a_tensor_that_a_queued_kernel_reads_twice(bench: Bench) -> Found:
    x = bench.full(3)
    bench.busy()
    square, neighbours = x * x, x[1:] - x[:-1] * 2
    x.add_(1)
    yield difference("the stored tensor", stored(bench, x), 4)
    bench.step()
    yield difference("the square of the old values", square, 9)
    yield difference("what two views made of the old values", neighbours, -3)


@saving("the queued kernels that make its inputs", "the save")
def saving_a_result_of_queued_results(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x + 1
    z = y * 3
    x.fill_(9)
    yield difference("the stored tensor", stored(bench, z), 6)
    bench.step()
    yield difference("the input", y, 2)


@saving("a queued write through a view", "the save of the base")
def saving_the_base_of_a_written_view(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x * 10
    x[3:5].add_(1)
    expected = torch.ones(bench.elements)
    expected[3:5] = 2
    yield difference("the stored tensor", stored(bench, x), expected)
    bench.step()
    yield difference("the product of the old values", y, 10)
    yield difference("the saved tensor", x, expected)


@saving("a queued write of the base", "the save of a view")
def saving_a_view_of_a_written_base(bench: Bench) -> Found:
    x = bench.full(1)
    view = x[2:7]
    bench.busy()
    y = view * 10
    x.add_(1)
    yield difference("the stored view", stored(bench, view), 2)
    bench.step()
    yield difference("the product of the old values", y, 10)
    yield difference("the base", x, 2)


@saving("a queued write of an alias", "the save of the tensor")
def saving_a_tensor_with_a_written_alias(bench: Bench) -> Found:
    x = bench.full(1)
    alias = x.detach().view(-1, 2)
    bench.busy()
    y = alias + 10
    alias.mul_(4)
    yield difference("the stored tensor", stored(bench, x), 4)
    bench.step()
    yield difference("the sum of the old values", y, 11)
    yield difference("the alias", alias, 4)


@saving("queued readers of the first and of the second value", "the save of each value")
def saving_twice(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    first = x + 10
    x.add_(1)
    yield difference("the tensor that was stored first", stored(bench, x), 2)
    second = x + 10
    x.add_(1)
    yield difference("the tensor that was stored second", stored(bench, x), 3)
    bench.step()
    yield difference("the sum of the first values", first, 11)
    yield difference("the sum of the second values", second, 12)


@hazard("a queued kernel that reads the old value", "a copy of the new value into a buffer on the host")
def copying_one_of_several_queued_tensors(bench: Bench) -> Found:
    t0, t1, buffer = bench.full(1), bench.full(2), bench.host(0)
    bench.busy()
    t2 = t0 + t1
    t1.add_(1)
    buffer.copy_(t1)
    yield difference("the buffer", buffer, 3)
    bench.step()
    yield difference("the sum of the old values", t2, 3)


@hazard("a queued kernel that reads the old value", "item() of the new value")
def item_of_one_of_several_queued_tensors(bench: Bench) -> Found:
    t0, t1 = bench.full(1), bench.full(2)
    bench.busy()
    t2 = t0 + t1
    t1.add_(1)
    yield difference("item()", torch.tensor([t1[0].item()]), 3)
    bench.step()
    yield difference("the sum of the old values", t2, 3)


@saving("the queued step of the optimizer", "the save of a state_dict and the next step")
def saving_a_state_dict_during_training(bench: Bench) -> Found:
    weight = torch.nn.Parameter(bench.full(100))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    model = torch.nn.ParameterDict({"weight": weight})
    x = bench.full(2)
    for step in range(1, 4):
        bench.busy()
        before = weight.detach() + 0
        weight.grad = x + 0  # set here: autograd's threads do not survive a fork
        optimizer.step()
        state = saved(bench, model.state_dict())
        assert isinstance(state, dict)
        yield difference(f"the weight that step {step} stored", state["weight"], 100 - 2 * step)
        bench.step()
        yield difference(f"the weight before step {step}", before, 100 - 2 * (step - 1))
    yield difference("the weight", weight, 94)


@hazard(
    "a queued kernel that reads donated memory", "the end of the step and the next user of the memory", Needs.DONATION
)
def donated_memory_read_by_a_queued_kernel(bench: Bench) -> Found:
    x = bench.full(1)
    bench.busy()
    y = x + 1
    bench.donate(x)
    bench.step()
    others = [bench.full(9) for _ in range(4)]
    yield difference("the sum", y, 2)
    del others


@hazard("the end of the step, which takes donated memory", "a read of the donated tensor", Needs.DONATION)
def donated_tensor_read_again(bench: Bench) -> Found:
    x = bench.full(1)
    bench.donate(x)
    yield difference("the donated tensor before the step ends", x, 1)
    where = x.data_ptr()
    bench.wait()  # nothing uses the memory any more, so that the next user can have it at once
    bench.step()
    others = bench.users_of(where)
    try:
        found = x.cpu()
    except RuntimeError:
        return  # an error is right, and so are the values
    yield difference("the donated tensor", found, 1)
    del others
