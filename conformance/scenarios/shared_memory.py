"""Tensors that share memory, and tensors of equal values that do not: copies within a storage, lazy clones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from conformance.scenarios.model import NotOffered, Results, conjugated, first_line, negated, offered, on, scenario

Views = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]

#: Two views of one storage, which have the same bytes or none in common: the target and the source of a copy.
VIEWS: dict[str, Views] = {
    "integers_of_floats": lambda x: (x.view(torch.int32), x),
    "floats_of_integers": lambda x: (x.view(torch.float32), x.view(torch.int32)),
    "halves_of_short_integers": lambda x: (x.view(torch.float16), x.view(torch.int16)),
    "bytes_with_a_sign": lambda x: (x.view(torch.int8), x.view(torch.uint8)),
    "long_integers_of_doubles": lambda x: (x.view(torch.int64), x.view(torch.float64)),
    "conjugate": lambda x: (x.view(torch.complex64), conjugated(x.view(torch.complex64))),
    "negated": lambda x: (x.view(torch.complex64).imag, negated(x.view(torch.complex64))),
    "a_part_of_it": lambda x: (x.view(4, 8)[1:3].view(torch.int32), x.view(4, 8)[1:3]),
    "columns": lambda x: (x.view(4, 8)[:, 2:6].view(torch.int32), x.view(4, 8)[:, 2:6]),
    "the_first_half": lambda x: (x[16:], x[:16]),
    "the_second_half": lambda x: (x[:16].view(torch.int32), x[16:]),
    "in_turns": lambda x: (x[::2], x[1::2]),
    "rows_to_columns": lambda x: (x.view(4, 8)[:, :4].t()[:2], x.view(4, 8)[:2, 4:]),
    "wider_from_behind": lambda x: (x[:16].view(torch.float64), x[24:]),
    "expanded": lambda x: (x.view(4, 8)[1:], x.view(4, 8)[0].expand(3, 8)),
    "itself": lambda x: (x, x.view_as(x)),
}


@scenario(exact=True, area="memory")
def copied_within_a_storage(device: str) -> Results:
    """A copy between two views of one storage converts, conjugates and moves as it does between two storages."""

    def copied(views: Views) -> torch.Tensor:
        x = on(device, torch.arange(32.0) * 3 - 7)
        target, source = views(x)
        target.copy_(source)
        return x.view(torch.int32)

    return {name: offered(partial(copied, views)) for name, views in VIEWS.items()}


def _lazily(x: torch.Tensor) -> torch.Tensor:
    """Return a clone whose memory is copied only when the clone or the original is written. Raises NotOffered."""
    try:
        return x._lazy_clone()  # noqa: SLF001  # there is no public name
    except RuntimeError as e:
        raise NotOffered(first_line(e)) from e


_Both = tuple[torch.Tensor, torch.Tensor]


def _written(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> _Both:
    clone = _lazily(x)
    write(clone)
    return x, clone


def _original_written(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> _Both:
    clone = _lazily(x)
    write(x)
    return x, clone


def _clone_of_a_part(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> _Both:
    clone = _lazily(x.view(8, 8)[2:6])
    write(clone.view(-1))
    return x, clone


def _clone_of_a_clone(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> _Both:
    first = _lazily(x)
    second = _lazily(first)
    write(first)
    return torch.cat([x, first]), second


def _clone_that_is_left(write: Callable[[torch.Tensor], object], x: torch.Tensor) -> _Both:
    clone = _lazily(x)
    x = x.new_zeros(1)
    write(clone)
    return x, clone


#: Which tensor is written while a clone has not been copied.
CLONES: dict[str, Callable[[Callable[[torch.Tensor], object], torch.Tensor], _Both]] = {
    "clone": _written,
    "original": _original_written,
    "clone_of_a_part": _clone_of_a_part,
    "clone_of_a_clone": _clone_of_a_clone,
    "clone_that_is_left": _clone_that_is_left,
}
#: Ways to write to the clone or to the original.
WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "whole": lambda x: x.add_(0.5),
    "element": lambda x: x[3].fill_(-1),
    "part": lambda x: x[5:9].zero_(),
    "by_an_index": lambda x: x.index_fill_(0, torch.tensor([1, 7], device=x.device), 9.0),
    "by_a_mask": lambda x: x.masked_fill_(x > 20, -2.0),
    "from_the_host": lambda x: x[:8].copy_(torch.arange(8.0) - 100),
    "from_another": lambda x: x[2:].copy_(torch.ones(1, device=x.device).expand(x.numel() - 2)),
    "as_a_result": lambda x: torch.mul(x, 2, out=x),
    "by_bytes": lambda x: x.view(torch.int32).add_(1),
    "by_its_storage": lambda x: x.untyped_storage().fill_(0),
}


SIZES = (1, 3, 7, 13, 61, 515, 4099, 65_537)  # bytes of a clone, not whole words


@scenario(exact=True, area="memory")
def cloned_when_written(device: str) -> Results:
    """A lazy clone and its original do not see each other's writes, and what is not written stays."""

    def made(clone: str, write: str) -> torch.Tensor:
        original, other = CLONES[clone](WRITES[write], on(device, torch.arange(64.0)))
        return torch.cat([original.flatten(), other.flatten()])

    def of_bytes(size: int) -> torch.Tensor:
        x = on(device, (torch.arange(size) % 251 + 1).to(torch.uint8))
        return torch.cat(_written(lambda clone: clone[:1].fill_(99), x))

    calls = {f"{clone}.{write}": partial(made, clone, write) for clone in CLONES for write in WRITES}
    return {name: offered(call) for name, call in (calls | {f"{n}_bytes": partial(of_bytes, n) for n in SIZES}).items()}


#: Ways to make a small tensor, always with the same values.
MADE: dict[str, Callable[[str], torch.Tensor]] = {
    "number": lambda d: torch.tensor(3.0, device=d),
    "number_sent": lambda d: torch.tensor(3.0).to(d),
    "number_converted": lambda d: torch.tensor(3).to(d, torch.float32),
    "number_copied": lambda d: torch.empty((), device=d).copy_(torch.tensor(3.0)),
    "element_sent": lambda d: torch.arange(4.0)[3].to(device=d),
    "element": lambda d: torch.arange(4.0, device=d)[3],
    "integer": lambda d: torch.tensor(3, device=d),
    "bool": lambda d: torch.tensor(True, device=d),
    "half": lambda d: torch.tensor(3.0, dtype=torch.float16, device=d),
    "scalar_tensor": lambda d: torch.scalar_tensor(3.0, device=d),
    "new_tensor": lambda d: torch.zeros(1, device=d).new_tensor(3.0),
    "list": lambda d: torch.tensor([1.0, 2.0, 3.0], device=d),
    "list_sent": lambda d: torch.tensor([1.0, 2.0, 3.0]).to(d),
    "full": lambda d: torch.full((3,), 3.0, device=d),
    "full_number": lambda d: torch.full((), 3.0, device=d),
    "zeros": lambda d: torch.zeros(3, device=d),
    "ones_like": lambda d: torch.ones_like(torch.zeros(3, device=d)),
    "arange": lambda d: torch.arange(3, device=d),
    "eye": lambda d: torch.eye(3, device=d),
    "indices": lambda d: torch.tril_indices(3, 3, device=d),
    "sum": lambda d: torch.ones(3, device=d).sum(),
}


@scenario(exact=True, area="memory")
def made_of_equal_values(device: str) -> Results:
    """What is written to a small tensor is seen neither by another one of the same values nor by one made later."""

    def made(way: Callable[[str], torch.Tensor]) -> torch.Tensor:
        written, earlier = way(device), way(device)
        written.logical_not_() if written.dtype is torch.bool else written.add_(1)
        return torch.stack([written, earlier, way(device)])

    return {name: offered(partial(made, way)) for name, way in MADE.items()}
