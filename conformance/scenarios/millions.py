"""Ops on millions of elements and rows: more than float32 can count, and more than a grid of blocks may have.

The cells have at most 65,537 rows. Counts and indices that a kernel keeps in float32 go wrong after the 16,777,216th
element, and the rows of some kernels after the 4,194,304th.
"""

from __future__ import annotations

import torch

from conformance.scenarios.model import Results, on, scenario

#: More elements than float32 has consecutive integers.
ELEMENTS = 2**24 + 5
#: More rows than 65,535 blocks of 64 rows.
ROWS = 2**22 + 7


def _whole(count: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    """Return whole numbers from 0 to 250. Their period is 251, so no block of a power of two repeats."""
    return (torch.arange(count, dtype=torch.int32) % 251).to(dtype)


@scenario(exact=True, slow=True)
def rows_in_order(device: str) -> Results:
    """Sort each of four million rows, and take the largest of each."""
    x = on(device, (_whole(3 * ROWS) * 7 % 251).to(torch.int16).view(ROWS, 3))
    values, indices = torch.sort(x, dim=1, stable=True)
    results: Results = {"sorted": values, "sorted_at": indices.to(torch.int8)}
    results["descending"] = torch.sort(x, dim=1, descending=True, stable=True).values
    results["largest"] = torch.topk(x, 1, dim=1).values
    results["largest_at"] = x.argmax(dim=1).to(torch.int8)
    return results


@scenario(exact=True, slow=True)
def rows_reduced(device: str) -> Results:
    """Reduce each of four million rows, and each of three columns as long."""
    x = on(device, _whole(3 * ROWS, torch.int16).view(ROWS, 3))
    results: Results = {"sums": x.sum(dim=1, dtype=torch.int32), "columns": x.sum(dim=0)}
    results["least"], results["least_of_columns"] = x.amin(dim=1), x.amin(dim=0)
    results["any"], results["all"] = (x > 248).any(dim=1), (x > 0).all(dim=1)
    results["scan"] = x.cumsum(dim=1, dtype=torch.int16)
    return results


@scenario(exact=True, slow=True)
def positions(device: str) -> Results:
    """Find elements behind the 16,777,216th, and count as many."""
    x = torch.zeros(ELEMENTS, dtype=torch.int32)
    x[-1], x[-3], x[1] = 5, -5, 1
    x = on(device, x)
    found = on(device, torch.ones(ELEMENTS, dtype=torch.bool))
    results: Results = {"largest_at": x.argmax(), "least_at": x.argmin(), "nonzero": x.nonzero()}
    results["count"], results["nonzero_count"] = found.sum(), torch.count_nonzero(x)
    results["last_counts"] = found.cumsum(0)[-8:]
    results["last_found"] = found.nonzero()[-8:]
    results["selected"], results["last_selected"] = torch.masked_select(x, x != 0), torch.masked_select(x, found)[-8:]
    results["range"] = torch.arange(ELEMENTS, device=device)[-8:]
    results["range_int32"] = torch.arange(ELEMENTS, dtype=torch.int32, device=device)[-8:]
    return results


@scenario(exact=True, slow=True)
def indices_far_behind(device: str) -> Results:
    """Read and write elements whose indices float32 cannot hold."""
    x = on(device, _whole(ELEMENTS, torch.uint8))
    at = on(device, torch.tensor([2**24 + 1, 3, 2**24 + 3, ELEMENTS - 1, 2**24 - 1, 0]))
    values = on(device, torch.tensor([255, 254, 253, 252, 251, 250], dtype=torch.uint8))
    results: Results = {"gathered": x.gather(0, at), "selected": x.index_select(0, at), "indexed": x[at]}
    results["taken"] = x.take(at)
    results["put"] = x.clone().index_put_((at,), values)
    results["scattered"] = x.clone().scatter_(0, at, values)
    results["copied"] = x.clone().index_copy_(0, at, values)
    results["filled"] = x.clone().index_fill_(0, at, 255)
    results["weights"] = torch.nn.functional.embedding(at[:4], x.to(torch.float32).view(-1, 1))
    return results


@scenario(exact=True, slow=True)
def copies_of_many(device: str) -> Results:
    """Copy sixteen million elements with strides, gaps and conversions, and put tensors together."""
    x = on(device, _whole(ELEMENTS, torch.uint8))
    matrix = x[: 4097 * 4095].view(4097, 4095)
    results: Results = {"transposed": matrix.t().contiguous(), "every_second": x[::2].clone(), "shifted": x[3:].clone()}
    results["joined"] = torch.cat([x[: ELEMENTS // 2], x])
    results["joined_columns"] = torch.cat([matrix[:, :3], matrix[:, 1:]], dim=1)
    results["expanded"] = x[:5].view(5, 1).expand(5, 2**22 + 3).contiguous()
    results["flipped"], results["rolled"] = x.flip(0), x.roll(7)
    results["float16"], results["bool"] = x.to(torch.float16), x.to(torch.bool)
    return results


@scenario(exact=True, slow=True)
def elements_alone(device: str) -> Results:
    """Compute with sixteen million elements, each by itself, dense, broadcast and chosen by a mask."""
    x = on(device, _whole(ELEMENTS, torch.int16))
    rows = x[: ROWS * 3].view(ROWS, 3)
    results: Results = {"added": x + x, "compared": x > 100, "negated": -x}
    results["broadcast"] = rows * rows[:1]
    results["broadcast_columns"] = rows + rows[:, :1]
    results["chosen"] = torch.where(x > 7, x, x * 2)
    results["masked"] = x.masked_fill(x == 250, -1)
    results["strided"] = x[1::2] - x[:-1:2]
    return results
