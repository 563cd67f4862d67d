"""Calls of many kinds of ops, whose results among other calls must be those of the call alone."""

from __future__ import annotations

from collections.abc import Callable

import torch

from conformance.scenarios.model import Broken, NotOffered, first_line, tensors_of

COLUMNS = 512  # columns of the operands; the largest kernels split one row
CLOSE = 1 / 64  # of the largest element: sums may use another order, and results of other operands are far off

#: Calls of two matrices of floats x and y. Their rows are a multiple of 16, and their columns a multiple of 64.
CALLS = {
    "exp": "torch.exp(x)", "tanh": "torch.tanh(x)", "sin": "torch.sin(x)", "sigmoid": "torch.sigmoid(x)",
    "sqrt": "x.abs().sqrt()", "neg": "torch.neg(x)", "floor": "torch.floor(x)", "erf": "torch.erf(x)",
    "gelu": "torch.nn.functional.gelu(x)", "relu": "torch.relu(x)", "log1p": "x.abs().log1p()",
    "add": "torch.add(x, y, alpha=2)", "mul": "x * y", "div": "x / (y.abs() + 1)", "maximum": "torch.maximum(x, y)",
    "less": "x < y", "where": "torch.where(x > y, x, y)", "numbers": "x * 3 + 1",
    "to_int": "x.to(torch.int32)", "to_half": "x.to(torch.float16)",
    "sum": "x.sum()", "sum_of_columns": "x.sum(0)", "amax": "x.amax(1)", "argmax": "x.argmax(1)", "var": "x.var(1)",
    "logsumexp": "x.logsumexp(1)", "norm": "torch.linalg.vector_norm(x)",
    "mm": "torch.mm(x, y.t())", "deep_product": "x.view(8, -1) @ y.view(8, -1).t()", "mv": "torch.mv(x, y[0])",
    "bmm": "torch.bmm(x.view(16, -1, 64), y.view(16, -1, 64).transpose(1, 2))",
    "dot": "torch.dot(x.view(-1), y.view(-1))",
    "sort": "torch.sort(x, 1)", "sort_of_vector": "x.view(-1).sort().values", "topk": "x.topk(5)",
    "median": "x.median(1).values", "unique": "x.to(torch.int64).unique()",
    "cumsum": "x.cumsum(1)", "cumsum_of_vector": "x.view(-1).cumsum(0)", "cummax": "x.cummax(1).values",
    "softmax": "x.softmax(1)", "log_softmax": "x.log_softmax(0)",
    "layer_norm": "torch.nn.functional.layer_norm(x, x.shape[1:])",
    "batch_norm": "torch.nn.functional.batch_norm(x.view(16, 8, -1), None, None, training=True)",
    "conv1d": "torch.nn.functional.conv1d(x.view(2, 8, -1), y[:, :24].reshape(-1, 8, 3))",
    "conv2d": "torch.nn.functional.conv2d(x.view(1, 4, -1, 64), y.view(-1)[:288].view(8, 4, 3, 3))",
    "max_pool2d": "torch.nn.functional.max_pool2d(x.view(1, 4, -1, 64), 2)",
    "cross_entropy": "torch.nn.functional.cross_entropy(x, y.argmax(1), reduction='none')",
    "index_select": "x.index_select(1, y[0].argsort())", "gather": "x.gather(1, y.argsort(1))",
    "masked_select": "x[x > y]", "nonzero": "(x > y).nonzero()", "scatter": "x.scatter(1, y.argsort(1), y)",
    "index_add": "torch.zeros_like(x).index_add_(0, y[:, 0].argsort() % 4, x)",
    "embedding": "torch.nn.functional.embedding(y[0, :16].argsort(), x)",
    "cat": "torch.cat([x, y, x])", "transposed": "x.t().contiguous()", "roll": "x.roll(3, 1)", "tril": "x.tril()",
    "from_host": "x + y.cpu().to(x.device)", "item": "x[0] * y[0, 0].item()",
    "inv": "torch.linalg.inv(x.view(-1, 16, 16)[:4] + 20 * torch.eye(16, device=x.device))",
    "gradient": "torch.autograd.grad((z := x.clone().requires_grad_()).mul(y).softmax(1).pow(2).sum(), z)[0]",
}  # fmt: skip


def operands(device: str, number: int, rows: int, columns: int = COLUMNS) -> dict[str, torch.Tensor]:
    """Return x and y on the device. The operands of two different ``number`` values have no results in common."""
    drawn = torch.Generator().manual_seed(number)
    x, y = (torch.randn((rows, columns), generator=drawn) + number / 2 for _ in range(2))
    return {"x": x.to(device), "y": y.to(device)}


def alone(name: str, given: dict[str, torch.Tensor]) -> list[torch.Tensor] | NotOffered:
    """Return the results of a call on the host. If the call fails alone, return NotOffered: other cells judge that."""
    found = _caught(lambda: on_host(called(name, given)))
    return NotOffered(f"{name} alone: {first_line(found)}") if isinstance(found, Exception) else found


def called(name: str, given: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Return the results of a call on the device. Raises any error of the call."""
    return tensors_of(eval(CALLS[name], {"torch": torch, **given}))  # evaluates a constant of this module


def on_host(results: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return copies of results on the host. Raises any error of the copies."""
    return [one.detach().to("cpu", copy=True) for one in results]


def tried(name: str, given: dict[str, torch.Tensor]) -> list[torch.Tensor] | Exception:
    """Return the results of a call on the device, or its error."""
    return _caught(called, name, given)


def _caught(call: Callable[..., list[torch.Tensor]], *arguments: object) -> list[torch.Tensor] | Exception:
    try:
        return call(*arguments)
    except Exception as e:  # noqa: BLE001  # whatever a backend raises
        return e


def compared(
    name: str, around: str, found: list[torch.Tensor] | Exception, wanted: list[torch.Tensor]
) -> torch.Tensor | Broken:
    """Return true if the results of a call are those of the call alone, else Broken.

    The lines of Broken are ``around``, which says how the call was made, as a comment, and the call.
    """
    fetched = _caught(on_host, found) if isinstance(found, list) else found
    if isinstance(fetched, list) and are_alike(fetched, wanted):
        return torch.tensor(True)
    error = (type(fetched).__name__, first_line(fetched)) if isinstance(fetched, Exception) else None
    return Broken((f"# {around}", CALLS[name]), 1, error)


def are_alike(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    """Return whether results on the host are those of a call alone: floats nearly, others in each element."""
    return len(found) == len(wanted) and all(map(_is_alike, found, wanted))


def _is_alike(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if not wanted.is_floating_point() or not wanted.numel():
        return bool(torch.equal(found, wanted))
    largest = float(wanted.double().nan_to_num(0.0, 0.0, 0.0).abs().max())
    return bool(torch.allclose(found.double(), wanted.double(), rtol=0.0, atol=CLOSE * largest, equal_nan=True))
