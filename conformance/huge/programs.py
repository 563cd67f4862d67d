"""The programs on huge tensors, and CPU's results for the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch.nn import functional

from conformance.huge.bench import Bench, Difference

Found = Iterator[Difference | None]
Op = Callable[..., torch.Tensor]

INT8, HALF, BOOL = torch.int8, torch.float16, torch.bool


@dataclass(frozen=True, slots=True)
class Program:
    """A program. ``tensors``: the device memory that it uses at once, as a multiple of its argument's."""

    name: str
    dtype: torch.dtype  # of the argument
    tensors: float
    run: Callable[[Bench], Found]

    def device_bytes(self, bench: Bench) -> int:
        """Return the bytes of device memory that the program needs."""
        size: int = self.dtype.itemsize
        return int(self.tensors * bench.length(self.dtype)) * size


PROGRAMS: dict[str, Program] = {}


def _add(name: str, dtype: torch.dtype, tensors: float, run: Callable[[Bench], Found]) -> None:
    if name in PROGRAMS:
        raise ValueError(f"two programs are called {name}")
    PROGRAMS[name] = Program(name, dtype, tensors, run)


def program(dtype: torch.dtype, tensors: float) -> Callable[[Callable[[Bench], Found]], Callable[[Bench], Found]]:
    """Register a function as a program, under the function's name."""

    def register(run: Callable[[Bench], Found]) -> Callable[[Bench], Found]:
        _add(run.__name__, dtype, tensors, run)
        return run

    return register


# One result for each element, or for each row, of the argument: CPU computes a chunk of them -------------------------

_ELEMENTWISE: dict[str, tuple[Op, torch.dtype]] = {
    "neg": (torch.neg, INT8),
    "add_scalar": (lambda x: x + 1, INT8),
    "mul_itself": (lambda x: x * x, INT8),
    "greater": (lambda x: x > 0, INT8),
    "where": (lambda x: torch.where(x > 0, x, -1), INT8),
    "masked_fill": (lambda x: x.masked_fill(x > 2, 9), INT8),
    "relu_half": (torch.relu, HALF),
    "clone": (torch.clone, INT8),
    "clone_half": (torch.clone, HALF),
    "to_bool": (lambda x: x.to(BOOL), INT8),
    "add_in_place": (lambda x: x.add_(2), INT8),
}
_COLUMNS = 513
_BY_ROWS: dict[str, tuple[Op, torch.dtype]] = {
    "sum_of_rows": (lambda x: x.sum(1), INT8),
    "amax_of_rows": (lambda x: x.amax(1), INT8),
    "argmin_of_rows": (lambda x: x.argmin(1), INT8),
    "sort_of_rows": (lambda x: x.sort(1).values, INT8),
    "cumsum_of_rows": (lambda x: x.cumsum(1, dtype=INT8), INT8),
    "flip_of_rows": (lambda x: x.flip(1), INT8),
    "softmax_of_rows": (lambda x: x.softmax(1), HALF),
    "layer_norm_of_rows": (lambda x: functional.layer_norm(x, (_COLUMNS,)), HALF),
}


def _elementwise(op: Op, dtype: torch.dtype, bench: Bench) -> Found:
    result = op(bench.tensor(bench.length(dtype), dtype=dtype))
    yield bench.compare("the result", result, lambda first, count: op(bench.values(first, count, dtype)))


def _by_rows(op: Op, dtype: torch.dtype, bench: Bench) -> Found:
    result = op(bench.tensor(bench.rows(_COLUMNS, dtype), _COLUMNS, dtype=dtype))
    yield bench.compare("the result", result, lambda first, count: op(bench.of_rows(first, count, _COLUMNS, dtype)))


for _name, (_op, _dtype) in _ELEMENTWISE.items():
    _add(_name, _dtype, 3, partial(_elementwise, _op, _dtype))
for _name, (_op, _dtype) in _BY_ROWS.items():
    _add(_name, _dtype, 3, partial(_by_rows, _op, _dtype))


# Filling and copying -------------------------------------------------------------------------------------------------


@program(INT8, 1)
def fill(bench: Bench) -> Found:
    """Write every element."""
    x = bench.empty(bench.length(INT8), dtype=INT8).fill_(3)
    yield bench.compare("the tensor", x, lambda _, count: torch.full((count,), 3, dtype=INT8))


@program(torch.int64, 1)
def arange(bench: Bench) -> Found:
    """Set every element to its position."""
    n = bench.length(torch.int64)
    yield bench.compare("the tensor", torch.arange(n, device=bench.device), lambda a, count: torch.arange(a, a + count))


@program(INT8, 2)
def contiguous_of_transposed(bench: Bench) -> Found:
    """Copy to other strides."""
    rows = bench.rows(_COLUMNS, INT8)
    x = bench.tensor(_COLUMNS, rows, dtype=INT8).t().contiguous()

    def expected(first: int, count: int) -> torch.Tensor:
        return torch.stack([bench.values(c * rows + first, count, INT8) for c in range(_COLUMNS)], 1)

    yield bench.compare("the copy", x, expected)


@program(INT8, 2)
def cat(bench: Bench) -> Found:
    """Join two tensors that are not huge into a huge tensor."""
    n = bench.length(INT8) // 2 + 1
    half = bench.tensor(n, dtype=INT8)
    both = torch.cat([half, half[: n - 1]])

    def expected(first: int, count: int) -> torch.Tensor:
        of_first = max(0, min(count, n - first))
        parts = [bench.values(first, of_first, INT8), bench.values(max(0, first - n), count - of_first, INT8)]
        return torch.cat([p for p in parts if p.numel()])

    yield bench.compare("the result", both, expected)


@program(INT8, 2)
def copy_of_a_part(bench: Bench) -> Found:
    """Copy another tensor to the last part of a huge tensor. The rest stays."""
    n = bench.length(INT8)
    part = bench.chunk // 8 + 1
    x = bench.empty(n, dtype=INT8).zero_()
    x[n - part :].copy_(bench.tensor(part, dtype=INT8))
    before, behind = x[: n - part], x[n - part :]
    yield bench.compare("the part that was not written", before, lambda _, count: torch.zeros(count, dtype=INT8))
    yield bench.compare("the part that was written", behind, lambda a, count: bench.values(a, count, INT8))


# Reductions of everything --------------------------------------------------------------------------------------------


@program(INT8, 1)
def sum_of_all(bench: Bench) -> Found:
    """Add up every element."""
    n = bench.length(INT8)
    total = sum(int(bench.values(first, count, INT8).sum()) for first, count in bench.chunks(n))
    yield bench.compare("the sum", bench.tensor(n, dtype=INT8).sum().view(1), lambda *_: torch.tensor([total]))


@program(INT8, 1)
def sum_of_columns(bench: Bench) -> Found:
    """Add up every row."""
    rows = bench.rows(_COLUMNS, INT8)
    total = sum(bench.of_rows(a, count, _COLUMNS, INT8).sum(0) for a, count in bench.chunks(rows, _COLUMNS))
    result = bench.tensor(rows, _COLUMNS, dtype=INT8).sum(0)
    yield bench.compare("the sums", result, lambda first, count: torch.as_tensor(total)[first : first + count])


def _marked(bench: Bench) -> tuple[torch.Tensor, list[int]]:
    """Return a tensor of zeros with three ones, two of them beyond indices of 32 bits, and the three positions."""
    n = bench.length(INT8)
    marked = [n // 3, bench.elements + 1, n - 2]
    x = bench.empty(n, dtype=INT8).zero_()
    for at in marked:
        x[at : at + 1].fill_(1)
    return x, marked


@program(INT8, 1)
def last_index_of_maximum(bench: Bench) -> Found:
    """Find a maximum beyond indices of 32 bits."""
    x, (first, *_) = _marked(bench)
    x[first : first + 1].zero_()
    yield bench.compare("the index", x.argmax().view(1), lambda *_: torch.tensor([bench.elements + 1]))


@program(INT8, 1.5)
def positions_that_are_not_zero(bench: Bench) -> Found:
    """Find and count all positions that are not zero."""
    x, marked = _marked(bench)
    yield bench.compare("the positions", x.nonzero().view(-1), lambda a, count: torch.tensor(marked[a : a + count]))
    yield bench.compare("their number", torch.count_nonzero(x).view(1), lambda *_: torch.tensor([3]))


# Rows by their numbers -----------------------------------------------------------------------------------------------


def _numbers(bench: Bench, rows: int) -> torch.Tensor:
    middle = bench.elements // _COLUMNS
    return torch.tensor([0, rows - 1, middle, middle + 1, rows // 2, rows - 2])


def _picked(dtype: torch.dtype, pick: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], bench: Bench) -> Found:
    rows = bench.rows(_COLUMNS, dtype)
    numbers = _numbers(bench, rows).clamp(max=rows - 1)
    result = pick(bench.tensor(rows, _COLUMNS, dtype=dtype), numbers.to(bench.device))
    right = torch.cat([bench.of_rows(int(number), 1, _COLUMNS, dtype) for number in numbers])
    yield bench.compare("the rows", result, lambda first, count: right[first : first + count])


_add("index_select", INT8, 1, partial(_picked, INT8, lambda x, at: x.index_select(0, at)))
_add("index", INT8, 1, partial(_picked, INT8, lambda x, at: x[at]))
_add("embedding", HALF, 1, partial(_picked, HALF, lambda x, at: functional.embedding(at, x)))
_add("gather", INT8, 1, partial(_picked, INT8, lambda x, at: x.gather(0, at[:, None].expand(-1, _COLUMNS))))


@program(INT8, 1)
def index_put(bench: Bench) -> Found:
    """Write the rows with these numbers, and no other row."""
    rows = bench.rows(_COLUMNS, INT8)
    numbers = _numbers(bench, rows).clamp(max=rows - 1)
    x = bench.empty(rows, _COLUMNS, dtype=INT8).zero_()
    x[numbers.to(bench.device)] = torch.ones((), dtype=INT8, device=bench.device)

    def expected(first: int, count: int) -> torch.Tensor:
        written = ((numbers >= first) & (numbers < first + count)).nonzero().view(-1)
        right = torch.zeros(count, _COLUMNS, dtype=INT8)
        right[numbers[written] - first] = 1
        return right

    yield bench.compare("the tensor", x, expected)


# Products ------------------------------------------------------------------------------------------------------------


@program(HALF, 1)
def matmul_of_huge(bench: Bench) -> Found:
    """Multiply a huge matrix by a vector."""
    rows = bench.rows(_COLUMNS, HALF)
    vector = bench.values(5, _COLUMNS, HALF).view(-1, 1)
    result = bench.tensor(rows, _COLUMNS, dtype=HALF) @ vector.to(bench.device)
    yield bench.compare("the product", result, lambda a, count: bench.of_rows(a, count, _COLUMNS, HALF) @ vector)


@program(HALF, 1)
def matmul_makes_huge(bench: Bench) -> Found:
    """Multiply two small matrices that have a huge product."""
    rows = bench.rows(_COLUMNS, HALF)
    row = bench.values(5, _COLUMNS, HALF).view(1, -1)
    result = bench.tensor(rows, 1, dtype=HALF) @ row.to(bench.device)
    yield bench.compare("the product", result, lambda a, count: bench.values(a, count, HALF).view(-1, 1) @ row)
