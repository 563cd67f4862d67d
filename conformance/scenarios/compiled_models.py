"""Compiled models and layers: perceptrons, attention, convolutions, norms, a step of training."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from conformance.scenarios.compiling import Inputs, Made, heads, images, leaves, program, rows


@program
def mlp() -> Made:
    """A perceptron gives its results and gradients."""
    return nn.Sequential(nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 7), nn.Tanh(), nn.Linear(7, 3)), leaves


@program
def gated_mlp() -> Made:
    """A gated perceptron multiplies two branches of one input."""
    return lambda x: functional.silu(x[:, :6]) * x[:, 6:].sigmoid(), leaves


@program
def classifier_loss() -> Made:
    """Cross entropy with ``ignore_index``: the ignored target adds nothing to the loss."""

    def inputs(n: int) -> Inputs:
        return torch.randn(n, 12, requires_grad=True), torch.arange(n) % 12

    return lambda x, target: functional.cross_entropy(x, target, ignore_index=3), inputs


@program
def attention_causal() -> Made:
    """Attention with a causal mask."""
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), heads


@program
def attention_padding() -> Made:
    """Attention with a mask of padding, in which no row is masked whole."""

    def inputs(n: int) -> Inputs:
        return *heads(n), torch.arange(n)[None, None, None] < torch.tensor([n, n // 2])[:, None, None, None]

    return lambda q, k, v, mask: functional.scaled_dot_product_attention(q, k, v, attn_mask=mask), inputs


@program
def attention_by_hand() -> Made:
    """Attention of products, a masked_fill with minus infinity, and a softmax."""

    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        scores = (q @ k.transpose(-1, -2)).masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v

    return body, heads


@program
def attention_window() -> Made:
    """Attention to a sliding window, by a bias that is added to the scores."""

    def body(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        place = torch.arange(q.shape[-2], device=q.device)
        far = (place[:, None] - place[None]).abs() > 3
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(far, -1e4, 0.0))

    return body, heads


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

    return Layer(), leaves


@program
def rotary_embedding() -> Made:
    """Rotary embeddings of halves that are joined again."""

    def body(x: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(x.shape[0], device=x.device)[:, None] / 10 ** torch.arange(6, device=x.device)
        a, b = x.chunk(2, -1)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    return body, rows


@program
def convolution_block() -> Made:
    """A convolution, batch norm and relu in training: results, gradients and running statistics."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU()), images


@program
def convolution_inference() -> Made:
    """A convolution and batch norm in inference."""
    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)).eval(), images


@program
def pooled_convolution() -> Made:
    """A convolution with groups, a maximum and a mean of windows."""
    return nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.MaxPool2d(2), nn.AvgPool2d(2)), images


@program
def upsampled() -> Made:
    """Images made larger by nearest and bilinear interpolation."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.interpolate(x, scale_factor=2), functional.interpolate(x, (9, 13), mode="bilinear")

    return body, images


@program
def padded() -> Made:
    """Images padded by constants, reflection and replication."""

    def body(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(functional.pad(x, (2, 1, 0, 3), mode=mode) for mode in ("constant", "reflect", "replicate"))

    return body, images


@program
def layer_norm() -> Made:
    """A layer norm, with the gradients of its weight and bias."""
    return nn.LayerNorm(12), leaves


@program
def group_norm() -> Made:
    """A group norm, with the gradients of its weight and bias."""
    return nn.GroupNorm(3, 12), lambda n: (torch.randn(3, 12, n, requires_grad=True),)


@program
def rms_norm() -> Made:
    """A root mean square norm of what was squared before."""
    return lambda x: x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt(), leaves


@program
def softmax_rows() -> Made:
    """Softmax and log-softmax along both dimensions."""
    return lambda x: (x.softmax(0), x.softmax(1), x.log_softmax(0), x.logsumexp(1)), leaves


@program
def embedded() -> Made:
    """A table of embeddings, with its gradient where a row is taken several times."""
    return nn.Embedding(9, 5, padding_idx=2), lambda n: (torch.arange(n) % 9,)


@program
def gradient_of_a_gradient_free_branch() -> Made:
    """A detached branch adds nothing to the gradient."""
    return lambda x: x.sin() * x.detach().cos() + x.square().sum(1, keepdim=True), leaves


@program
def training_step() -> Made:
    """A step of training in one graph: a loss, its gradient by hand, and weights that are written."""

    def body(x: torch.Tensor, weight: torch.Tensor, momentum: torch.Tensor) -> torch.Tensor:
        error = x @ weight - 1
        momentum.mul_(0.9).add_(x.t() @ error / x.shape[0])
        weight.sub_(0.1 * momentum)
        return error.square().mean()

    return body, lambda n: (torch.randn(n, 12), torch.randn(12, 3), torch.zeros(12, 3))
