"""Compiled programs of tensors: views, writes, strides, indices, sizes, draws."""

from __future__ import annotations

import torch
from torch.nn import functional

from conformance.scenarios.compiling import Inputs, Made, program, rows


@program
def in_place_chain() -> Made:
    """Writes to a fresh tensor, one after the other."""
    return lambda x: (x + 1).mul_(2).add_(x).clamp_(-1, 3).sigmoid_(), rows


@program
def mutated_argument() -> Made:
    """A graph writes its argument, and returns a value of before and one of after."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = x.sum(0)
        x.add_(1).mul_(2)
        return before, x.sum(0)

    return body, rows


@program
def mutated_through_a_view() -> Made:
    """A graph writes a row and a column of its argument through views."""

    def body(x: torch.Tensor) -> torch.Tensor:
        x[1].zero_()
        x[:, 2].add_(5)
        x.view(-1)[3:7] = 9
        return x * 2

    return body, rows


@program
def mutated_twice() -> Made:
    """A graph swaps its two arguments."""

    def body(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        held = x.clone()
        x.copy_(y)
        y.copy_(held)
        return x - y

    return body, lambda n: (torch.randn(n, 12), torch.randn(n, 12))


@program
def copied_with_conversion() -> Made:
    """A graph copies between dtypes, and into an argument of another dtype."""

    def body(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y.copy_(x * 100)
        return x.to(torch.bfloat16), (x * 100).to(torch.int64), x.to(torch.float64) / 3, x > 0

    return body, lambda n: (torch.randn(n, 12), torch.zeros(n, 12, dtype=torch.int32))


@program
def arguments_at_an_offset() -> Made:
    """The arguments of a graph begin within their storages."""
    return lambda x, y: (x + y, x @ y.t()), lambda n: (torch.randn(n + 1, 12)[1:], torch.randn(n + 3, 12)[3:])


@program
def strided_arguments() -> Made:
    """The arguments of a graph are transposed, have gaps, and repeat elements."""

    def inputs(n: int) -> Inputs:
        return torch.randn(12, n).t(), torch.randn(n, 24)[:, ::2], torch.randn(1, 12).expand(n, 12)

    return lambda x, y, z: (x + y * z, (x * 2).sum(1), y.t().contiguous(), z.cumsum(0)), inputs


@program
def strides_of_results() -> Made:
    """Results keep the strides that they have eagerly: views, permutations and copies."""
    return lambda x: (x.t() + 1, x.t().contiguous(), x.t().clone(), (x + 1)[::2], x.unfold(0, 3, 2) * 1), rows


@program
def views_of_results() -> Made:
    """A graph returns a tensor, and views of the tensor."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return y, y[2:], y.view(-1)[5:], y.t(), y.unsqueeze(1).expand(-1, 2, -1)

    return body, rows


@program
def joined() -> Made:
    """Ten tensors joined, stacked, and taken apart."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = [x * i for i in range(10)]
        return torch.cat(parts), torch.stack(parts, 1), *torch.cat(parts, 1).split(50, 1)

    return body, rows


@program
def gathered() -> Made:
    """Rows and elements taken by indices, negative ones too."""

    def body(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[i], x[-i], x.gather(0, i[:, None].expand(-1, 12)), x.index_select(0, i), x[:, i % 12]

    return body, lambda n: (torch.randn(n, 12), torch.arange(n).flip(0) // 2)


@program
def scattered() -> Made:
    """Elements written and added by indices, some of them several times."""

    def body(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        added = torch.zeros_like(x).index_add(0, i, x)
        return added, torch.zeros_like(x).scatter_add(0, i[:, None].expand_as(x), x), x.index_put((i,), x[:1])

    return body, lambda n: (torch.randn(n, 12), torch.arange(n) // 3)


@program
def masked() -> Made:
    """Choices by masks that are broadcast."""

    def body(x: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.where(mask, x, -x), x.masked_fill(mask, 0.5), x * mask, mask & (x > 0), x.tril(1)

    return body, lambda n: (torch.randn(n, 12), torch.arange(n)[:, None] % 3 == 0)


@program
def integers() -> Made:
    """Divisions, remainders, shifts and bits of integers."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x // 3, x % 3, x // -4, torch.remainder(x, -5), x << 2, x >> 1, x & 6, x.bitwise_not(), x.float() / 7

    return body, lambda n: (torch.arange(n) - n // 2,)


@program
def special_values() -> Made:
    """Infinities and NaN in comparisons, extremes and sums."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.maximum(-x), x.clamp(-1, 1), x.isnan(), x.nan_to_num(), x == x, x.amax(0), x.sign()

    def inputs(n: int) -> Inputs:
        x = torch.randn(n, 12)
        x[::3], x[1::5], x[2::7] = float("nan"), float("inf"), -0.0
        return (x,)

    return body, inputs


@program
def low_precision() -> Made:
    """Products, sums and norms of bfloat16, rounded to it at the end of the graph alone."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.to(torch.bfloat16)
        return (y @ y.t()).float(), y.sum(0), y.amax(1), y.float().softmax(1)

    return body, lambda n: (torch.arange(n * 12).view(n, 12) % 5 - 2.0,)


@program
def matrix_products() -> Made:
    """Products of matrices, vectors and batches, with what is added to them."""

    def body(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        batch = x.view(1, -1, 12).expand(3, -1, -1)
        return x @ y, torch.addmm(x[:, :5], x, y, beta=0.5), batch @ y, x @ y[:, 0], torch.einsum("ab,bc->ca", x, y)

    return body, lambda n: (torch.randn(n, 12), torch.randn(12, 5))


@program
def branch_on_a_size() -> Made:
    """A choice by a size that is one graph for each side."""
    return lambda x: x * 2 if x.shape[0] > 20 else x.sum(0), rows


@program
def sizes_as_numbers() -> Made:
    """Sizes enter the values: ranges, quotients, and tensors made from them."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[0]
        return x / n, torch.arange(n, device=x.device) * n, x.new_full((n, 2), n), x.view(-1, 4).sum(1), x[n // 2 :]

    return body, rows


@program
def dropped_out() -> Made:
    """Dropout keeps about half, and doubles what it keeps."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = functional.dropout(x.abs() + 1, 0.5)
        kept = (y != 0).float().mean()
        return (y == 0) | ((y - 2 * (x.abs() + 1)).abs() < 1e-4), (kept > 0.3) & (kept < 0.7)

    return body, lambda n: (torch.randn(n, 40),)


@program
def drawn() -> Made:
    """Draws of a graph lie in their range, and differ from each other."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, v = torch.rand_like(x), torch.rand_like(x)
        whole = torch.randint(3, 9, x.shape, device=x.device)
        return (u >= 0) & (u < 1), (u != v).any(), (whole >= 3) & (whole < 9), torch.randn_like(x).isfinite()

    return body, rows


@program
def reductions() -> Made:
    """Sums, means, extremes and variances, of all elements and of dimensions."""
    return lambda x: (x.sum(), x.mean(0), x.amax(1), x.amin(0), x.var(1), x.prod(1), x.argmax(1), x.any(0)), rows


@program
def scans() -> Made:
    """Cumulative sums and products along both dimensions."""
    return lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1), x.cummax(0)), rows


@program
def sorted_rows() -> Made:
    """Sorts and the largest elements."""
    return lambda x: (x.sort(stable=True, dim=0), x.topk(3, 1), x.argsort(stable=True, dim=1)), rows
