"""Programs under ``torch.compile``, by backend, static and dynamic, against the same program run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from conformance.scenarios.model import NotOffered, Results, first_line, scenario
from conformance.support.compiled_code import compiler_error
from conformance.torch_versions import inductor_knows

Inputs = tuple[torch.Tensor, ...]
#: A function of tensors or a module, and its arguments by a size. It may write them and return nested tuples.
Made = tuple[Callable[..., Any], Callable[[int], Inputs]]
#: By name: the backend of torch.compile ("" for a program that is not compiled), and whether sizes are symbols.
MODES: dict[str, tuple[str, bool]] = {
    "not compiled": ("", False),
    "eager": ("eager", False),
    "aot_eager": ("aot_eager", False),
    "inductor": ("inductor", False),
    "inductor, dynamic": ("inductor", True),
}
#: The sizes that a program is called with. More than a vector of any dtype, with a tail, and another one.
SIZES = (35, 18)


def program(make: Callable[[], Made]) -> Callable[[str], Results]:
    """Register a scenario that runs a program in each of ``MODES``. The program is made on CPU, from one seed."""

    def run(device: str) -> Results:
        found: Results = {}
        plain = _outputs(make, "cpu", "", dynamic=False) if device == "cpu" else {}
        for mode, (backend, dynamic) in MODES.items():
            for name, tensor in (plain or _tried(make, device, mode, backend, dynamic)).items():
                found[f"{mode}: {name}"] = tensor
        return found

    run.__name__, run.__doc__, run.__module__ = make.__name__, make.__doc__, make.__module__
    return scenario(slow=True, compiles=True)(run)


def _tried(make: Callable[[], Made], device: str, mode: str, backend: str, dynamic: bool) -> Results:
    """Return the outputs in one mode. Raises RuntimeError that names the mode if the program does."""
    kind = torch.device(device).type
    if backend == "inductor" and not inductor_knows(kind):
        missing = NotOffered(f"Inductor has no backend registered for {kind}")
        return dict.fromkeys(_outputs(make, "cpu", "", dynamic=False), missing)
    try:
        found = _outputs(make, device, backend, dynamic)
    except Exception as e:
        line = compiler_error(e)
        said = (
            f"the C++ compiler refuses the generated code: {line}" if line else f"{type(e).__name__}: {first_line(e)}"
        )
        raise RuntimeError(f"{mode}: {said}") from e
    return _excused(make, found, backend, dynamic) if backend else found


def _excused(make: Callable[[], Made], found: Results, backend: str, dynamic: bool) -> Results:
    """Return the outputs without those that torch compiles to the same wrong values for CPU."""
    eager = _outputs(make, "cpu", "", dynamic=False)
    if all(_close(found[name], eager[name]) for name in found):
        return found
    on_cpu = _outputs(make, "cpu", backend, dynamic)
    wrong = {name for name in found if not _close(on_cpu[name], eager[name]) and _close(found[name], on_cpu[name])}
    reason = NotOffered(f"{backend} compiles the program to the same wrong values for CPU")
    return {name: reason if name in wrong else output for name, output in found.items()}


def _close(one: torch.Tensor | NotOffered, other: torch.Tensor | NotOffered) -> bool:
    assert isinstance(one, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    return one.shape == other.shape and torch.allclose(one.cpu(), other, 1e-4, 1e-5, equal_nan=True)


def _outputs(make: Callable[[], Made], device: str, backend: str, dynamic: bool) -> Results:
    """Return results, arguments, buffers, and the gradients of arguments and parameters, for each size."""
    torch.manual_seed(0)
    body, inputs = make()
    body = body.to(device) if isinstance(body, nn.Module) else body
    if backend:
        torch.compiler.reset()
        called = torch.compile(body, backend=backend, fullgraph=True, dynamic=dynamic)
    else:
        called = body
    found: Results = {}
    for size in SIZES:
        torch.manual_seed(size)
        given = [_leaf(x, device) for x in inputs(size)]
        results = _flat(called(*given))
        for name, tensor in _named(body, given, results):
            found[f"{name}, size {size}"] = tensor.detach()
    torch.compiler.reset()
    return found


def _leaf(x: torch.Tensor, device: str) -> torch.Tensor:
    """Return a tensor on the device with the strides and the offset of a tensor on CPU, and a leaf if that is one."""
    if x.requires_grad:
        return x.detach().to(device).requires_grad_()
    if x.storage_offset() == 0 and x.is_contiguous():
        return x.to(device)
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(device)
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def _named(body: Any, given: list[torch.Tensor], results: list[torch.Tensor]) -> list[tuple[str, torch.Tensor]]:
    """Return all tensors to compare, after a loss that weighs each element of the results differently."""
    loss = [(r.float() * torch.linspace(1, 2, r.numel()).view(r.shape).to(r.device)).sum() for r in results]
    if any(r.requires_grad for r in results):
        torch.stack(loss).sum().backward()
    named = [(f"result {i}", r) for i, r in enumerate(results)]
    named += [(f"argument {i}", x) for i, x in enumerate(given)]
    named += [(f"gradient of argument {i}", x.grad) for i, x in enumerate(given) if x.grad is not None]
    if isinstance(body, nn.Module):
        named += [(f"gradient of {name}", p.grad) for name, p in body.named_parameters() if p.grad is not None]
        named += [(name, buffer.clone()) for name, buffer in body.named_buffers()]
        body.zero_grad()
    return named


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _flat(v)]
    return [value] if isinstance(value, torch.Tensor) else []


def _rows(n: int) -> Inputs:
    return (torch.randn(n, 12),)


def _leaves(n: int) -> Inputs:
    return (torch.randn(n, 12, requires_grad=True),)


def _heads(n: int) -> Inputs:
    return tuple(torch.randn(2, 3, n, 8) for _ in range(3))


def _images(n: int) -> Inputs:
    return (torch.randn(2, 3, n, 11),)


@program
def mlp() -> Made:
    """A perceptron gives its results and gradients."""
    return nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 7), nn.Tanh(), nn.Linear(7, 3)), _leaves


@program
def gated_mlp() -> Made:
    """A gated perceptron multiplies two branches of one input."""
    return lambda x: functional.silu(x[:, :6]) * x[:, 6:].sigmoid(), _leaves


@program
def classifier_loss() -> Made:
    """A loss over classes ignores the target that it is told to ignore."""

    def inputs(n: int) -> Inputs:
        return torch.randn(n, 12, requires_grad=True), torch.arange(n) % 12

    return lambda x, target: functional.cross_entropy(x, target, ignore_index=3), inputs


@program
def attention_causal() -> Made:
    """Attention with a causal mask."""
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), _heads


@program
def attention_padding() -> Made:
    """Attention with a mask of padding, in which no row is masked whole."""

    def inputs(n: int) -> Inputs:
        return *_heads(n), torch.arange(n)[None, None, None] < torch.tensor([n, n // 2])[:, None, None, None]

    return lambda q, k, v, mask: functional.scaled_dot_product_attention(q, k, v, attn_mask=mask), inputs


@program
def attention_by_hand() -> Made:
    """Attention of products, a masked_fill with minus infinity, and a softmax."""

    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-1, -2)).masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v

    return body, _heads


@program
def attention_window() -> Made:
    """Attention to a sliding window, by a bias that is added to the scores."""

    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        place = torch.arange(q.shape[-2], device=q.device)
        far = (place[:, None] - place[None]).abs() > 3
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(far, -1e4, 0.0))

    return body, _heads


@program
def multihead_attention() -> Made:
    """A layer of attention with a projection of three at once, and its gradients."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(12, 36)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, k, v = (t.view(-1, 3, 4).transpose(0, 1) for t in self.project(x).chunk(3, -1))
            return (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v

    return Layer(), _leaves


@program
def rotary_embedding() -> Made:
    """Rotary embeddings of halves that are joined again."""

    def body(x: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(x.shape[0], device=x.device)[:, None] / 10 ** torch.arange(6, device=x.device)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    return body, _rows


@program
def convolution_block() -> Made:
    """A convolution, batch norm and relu in training: results, gradients and running statistics."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()), _images


@program
def convolution_inference() -> Made:
    """A convolution and batch norm in inference."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)).eval(), _images


@program
def pooled_convolution() -> Made:
    """A convolution with groups, a maximum and a mean of windows."""
    return nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.MaxPool2d(2), nn.AvgPool2d(2)), _images


@program
def upsampled() -> Made:
    """Images made larger by nearest and bilinear interpolation."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.interpolate(x, scale_factor=2), functional.interpolate(x, (9, 13), mode="bilinear")

    return body, _images


@program
def padded() -> Made:
    """Images padded by constants, reflection and replication."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(functional.pad(x, (2, 1, 0, 3), mode=mode) for mode in ("constant", "reflect", "replicate"))

    return body, _images


@program
def layer_norm() -> Made:
    """A layer norm, with the gradients of its weight and bias."""
    return nn.LayerNorm(12), _leaves


@program
def group_norm() -> Made:
    """A group norm, with the gradients of its weight and bias."""
    return nn.GroupNorm(3, 12), lambda n: (torch.randn(3, 12, n, requires_grad=True),)


@program
def rms_norm() -> Made:
    """A root mean square norm of what was squared before."""
    return lambda x: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt(), _leaves


@program
def softmax_rows() -> Made:
    """Softmax and log-softmax along both dimensions."""
    return lambda x: (x.softmax(0), x.softmax(1), x.log_softmax(0), x.logsumexp(1)), _leaves


@program
def reductions() -> Made:
    """Sums, means, extremes and variances, of all elements and of dimensions."""
    return lambda x: (x.sum(), x.mean(0), x.amax(1), x.amin(0), x.var(1), x.prod(1), x.argmax(1), x.any(0)), _rows


@program
def scans() -> Made:
    """Cumulative sums and products along both dimensions."""
    return lambda x: (x.cumsum(0), x.cumsum(1), x.cumprod(1), x.cummax(0)), _rows


@program
def sorted_rows() -> Made:
    """Sorts and the largest elements."""
    return lambda x: (x.sort(stable=True, dim=0), x.topk(3, 1), x.argsort(stable=True, dim=1)), _rows


@program
def in_place_chain() -> Made:
    """Writes to a fresh tensor, one after the other."""
    return lambda x: (x + 1).mul_(2).add_(x).clamp_(-1, 3).sigmoid_(), _rows


@program
def mutated_argument() -> Made:
    """A graph writes its argument, and returns a value of before and one of after."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = x.sum(0)
        x.add_(1).mul_(2)
        return before, x.sum(0)

    return body, _rows


@program
def mutated_through_a_view() -> Made:
    """A graph writes a row and a column of its argument through views."""

    def body(x: torch.Tensor) -> torch.Tensor:
        x[1].zero_()
        x[:, 2].add_(5)
        x.view(-1)[3:7] = 9
        return x * 2

    return body, _rows


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
    return lambda x: (x.t() + 1, x.t().contiguous(), x.t().clone(), (x + 1)[::2], x.unfold(0, 3, 2) * 1), _rows


@program
def views_of_results() -> Made:
    """A graph returns a tensor, and views of the tensor."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return y, y[2:], y.view(-1)[5:], y.t(), y.unsqueeze(1).expand(-1, 2, -1)

    return body, _rows


@program
def joined() -> Made:
    """Ten tensors joined, stacked, and taken apart."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = [x * i for i in range(10)]
        return torch.cat(parts), torch.stack(parts, 1), *torch.cat(parts, 1).split(50, 1)

    return body, _rows


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
def embedded() -> Made:
    """A table of embeddings, with its gradient where a row is taken several times."""
    return nn.Embedding(9, 5, padding_idx=2), lambda n: (torch.arange(n) % 9,)


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
    return lambda x: x * 2 if x.shape[0] > 20 else x.sum(0), _rows


@program
def sizes_as_numbers() -> Made:
    """Sizes enter the values: ranges, quotients, and tensors made from them."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        n = x.shape[0]
        return x / n, torch.arange(n, device=x.device) * n, x.new_full((n, 2), n), x.view(-1, 4).sum(1), x[n // 2 :]

    return body, _rows


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

    return body, _rows


@program
def gradient_of_a_gradient_free_branch() -> Made:
    """A detached branch adds nothing to the gradient."""
    return lambda x: x.sin() * x.detach().cos() + x.square().sum(1, keepdim=True), _leaves


@program
def training_step() -> Made:
    """A step of training in one graph: a loss, its gradient by hand, and weights that are written."""

    def body(x: torch.Tensor, weight: torch.Tensor, momentum: torch.Tensor) -> torch.Tensor:
        error = x @ weight - 1
        momentum.mul_(0.9).add_(x.t() @ error / x.shape[0])
        weight.sub_(0.1 * momentum)
        return error.square().mean()

    return body, lambda n: (torch.randn(n, 12), torch.randn(12, 3), torch.zeros(12, 3))
