"""One training step of the modules of ``torch.nn``, and what belongs to it: optimizers, AMP, checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from conformance.scenarios.model import NotOffered, Results, offered, on, scenario, tensors_of
from conformance.torch_versions import autocasts

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


def _step(device: str, make: Callable[[], Made], outputs: slice = slice(None), **optimizer: Any) -> torch.Tensor:
    """Return the loss, the gradients and the parameters after a step, in one row.

    The module and its inputs are made on CPU from one seed. ``outputs``: the outputs of the module that enter the loss.
    """
    torch.manual_seed(0)
    module, inputs = make()
    module = copy.deepcopy(module).to(device)
    given = [x.to(device).requires_grad_(x.is_floating_point()) for x in inputs]
    found = module(*given)
    tensors = [t for t in tensors_of(found) if t.is_floating_point()][outputs]
    loss = sum((t.square().mean() for t in tensors), torch.zeros((), device=device))
    loss.backward()
    chosen = optimizer.pop("kind", torch.optim.SGD)
    parameters = list(module.parameters())
    if parameters:
        chosen(parameters, lr=0.1, **optimizer).step()
    rows = [loss, *(x.grad for x in given if x.grad is not None), *parameters]
    return torch.cat([t.detach().cpu().reshape(-1) for t in rows])


def _steps(device: str, modules: dict[str, Callable[[], Made]], **optimizer: Any) -> Results:
    return {name: offered(partial(_step, device, make, **optimizer)) for name, make in modules.items()}


LAYERS: dict[str, Callable[[], Made]] = {
    "linear": lambda: (nn.Linear(5, 3), (torch.randn(4, 5),)),
    "bilinear": lambda: (nn.Bilinear(3, 4, 2), (torch.randn(5, 3), torch.randn(5, 4))),
    "conv1d": lambda: (nn.Conv1d(4, 6, 3, padding=1), (torch.randn(2, 4, 9),)),
    "conv2d": lambda: (nn.Conv2d(3, 4, 3, stride=2), (torch.randn(2, 3, 9, 8),)),
    "conv2d_groups": lambda: (nn.Conv2d(4, 8, 3, groups=2, dilation=2), (torch.randn(2, 4, 9, 9),)),
    "conv3d": lambda: (nn.Conv3d(2, 3, 2), (torch.randn(2, 2, 4, 5, 4),)),
    "conv_transpose2d": lambda: (nn.ConvTranspose2d(3, 2, 3, stride=2), (torch.randn(2, 3, 4, 5),)),
    "batch_norm1d": lambda: (nn.BatchNorm1d(4), (torch.randn(6, 4),)),
    "batch_norm2d": lambda: (nn.BatchNorm2d(3), (torch.randn(2, 3, 4, 4),)),
    "layer_norm": lambda: (nn.LayerNorm((3, 4)), (torch.randn(2, 3, 4),)),
    "group_norm": lambda: (nn.GroupNorm(2, 4), (torch.randn(2, 4, 5),)),
    "rms_norm": lambda: (nn.RMSNorm(6), (torch.randn(3, 6),)),
    "instance_norm": lambda: (nn.InstanceNorm2d(3, affine=True), (torch.randn(2, 3, 4, 4),)),
    "embedding": lambda: (nn.Embedding(10, 4, padding_idx=0), (torch.tensor([[1, 0, 3], [9, 1, 1]]),)),
    "embedding_bag": lambda: (nn.EmbeddingBag(10, 4, mode="mean"), (torch.tensor([[1, 2], [3, 3]]),)),
    "prelu": lambda: (nn.PReLU(4), (torch.randn(3, 4),)),
    "max_pool2d": lambda: (nn.MaxPool2d(2), (torch.randn(2, 3, 6, 6),)),
    "avg_pool2d": lambda: (nn.AvgPool2d(3, stride=2, padding=1), (torch.randn(2, 3, 6, 6),)),
    "adaptive_pool": lambda: (nn.AdaptiveAvgPool2d((2, 3)), (torch.randn(2, 3, 7, 8),)),
    "upsample": lambda: (nn.Upsample(scale_factor=2, mode="bilinear"), (torch.randn(1, 2, 3, 4),)),
    "pixel_shuffle": lambda: (nn.PixelShuffle(2), (torch.randn(1, 8, 3, 3),)),
    "glu": lambda: (nn.GLU(), (torch.randn(3, 6),)),
    "softmax": lambda: (nn.Softmax(-1), (torch.randn(3, 6),)),
}
RECURRENT: dict[str, Callable[[], Made]] = {
    "rnn": lambda: (nn.RNN(3, 4, num_layers=2), (torch.randn(5, 2, 3),)),
    "gru": lambda: (nn.GRU(3, 4, bidirectional=True), (torch.randn(5, 2, 3),)),
    "lstm": lambda: (nn.LSTM(3, 4, batch_first=True), (torch.randn(2, 5, 3),)),
    "rnn_cell": lambda: (nn.RNNCell(3, 4), (torch.randn(2, 3),)),
    "gru_cell": lambda: (nn.GRUCell(3, 4), (torch.randn(2, 3),)),
    "lstm_cell": lambda: (nn.LSTMCell(3, 4), (torch.randn(2, 3),)),
}


#: The numbers of outputs of the recurrent layers and cells with several outputs.
OUTPUTS = {"rnn": 2, "gru": 2, "lstm": 3, "lstm_cell": 2}


class _SelfAttention(nn.Module):
    """Self-attention of a sequence, as a module with one argument."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
        return found


ATTENTION: dict[str, Callable[[], Made]] = {
    "self_attention": lambda: (_SelfAttention(), (torch.randn(2, 5, 8),)),
    "encoder_layer": lambda: (
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (torch.randn(2, 5, 8),),
    ),
    "decoder_layer": lambda: (
        nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (torch.randn(2, 5, 8), torch.randn(2, 3, 8)),
    ),
}  # fmt: skip


@scenario(slow=True, area="training")
def layers(device: str) -> Results:
    """A step of SGD through each kind of layer gives CPU's loss, gradients and parameters."""
    return _steps(device, LAYERS)


@scenario(slow=True, area="training")
def recurrent_layers(device: str) -> Results:
    """A step of SGD through recurrent layers and their cells gives CPU's loss, gradients and parameters."""
    return _steps(device, RECURRENT)


@scenario(area="training")
def recurrent_states(device: str) -> Results:
    """Recurrent layers and cells that begin with a small or a large state give CPU's outputs and states."""

    def begun(name: str, scale: float) -> torch.Tensor:
        torch.manual_seed(0)
        module, (x,) = RECURRENT[name]()
        batch = (2,) if name.endswith("_cell") else (2 if name != "lstm" else 1, 2)
        states = [scale * torch.randn(*batch, 4) for _ in range(1 + name.startswith("lstm"))]
        moved = [state.to(device) for state in states]
        found = module.to(device)(x.to(device), tuple(moved) if len(moved) > 1 else moved[0])
        return torch.cat([t.detach().cpu().reshape(-1) for t in tensors_of(found)])

    return {f"{name}_{scale}": offered(partial(begun, name, scale)) for name in RECURRENT for scale in (1, 300)}


@scenario(slow=True, area="training")
def one_output_of_several(device: str) -> Results:
    """A step of SGD by one output of a recurrent layer or cell alone gives CPU's loss, gradients and parameters."""
    return {
        f"{name}_{i}": offered(partial(_step, device, RECURRENT[name], slice(i, i + 1)))
        for name, count in OUTPUTS.items()
        for i in range(count)
    }


@scenario(slow=True, area="training")
def attention_layers(device: str) -> Results:
    """A step of SGD through attention and transformer layers gives CPU's loss, gradients and parameters."""
    return _steps(device, ATTENTION)


OPTIMIZERS: dict[str, Any] = {
    "sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop, "adamax": torch.optim.Adamax, "nadam": torch.optim.NAdam,
}  # fmt: skip
FUSED = ("sgd", "adam", "adamw", "adagrad")


def _optimized(device: str, how: str, names: tuple[str, ...]) -> Results:
    settings: dict[str, Any] = {} if how == "plain" else {how: True}

    def run(name: str) -> torch.Tensor:
        return _step(device, LAYERS["linear"], kind=OPTIMIZERS[name], **settings)

    return {f"{name}_{how}": offered(partial(run, name)) for name in names}


@scenario(slow=True, area="training")
def optimizers(device: str) -> Results:
    """Optimizers make CPU's step, one parameter after the other and by ``foreach=True``."""
    return {**_optimized(device, "plain", tuple(OPTIMIZERS)), **_optimized(device, "foreach", tuple(OPTIMIZERS))}


@scenario(slow=True, area="training")
def fused_optimizers(device: str) -> Results:
    """Optimizers make CPU's step by ``fused=True``, where torch takes that for the device."""
    results: Results = {}
    for name in FUSED:
        step = partial(_step, device, LAYERS["linear"], kind=OPTIMIZERS[name], fused=True)
        results[f"{name}_fused"] = offered(partial(_fused, step))
        results[f"{name}_fused_scaled"] = offered(partial(_fused, partial(_scaled_steps, device, name)))
    return results


def _fused(steps: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Return the result of steps of a fused optimizer. Raises NotOffered if torch does not take it for the device."""
    try:
        return steps()
    except RuntimeError as e:
        if "fused=True" not in str(e):
            raise
        raise NotOffered(str(e)) from None


def _scaled_steps(device: str, name: str) -> torch.Tensor:
    """Return a weight after steps of a fused optimizer with scaled gradients, which are infinite in the second step."""
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=8.0, growth_interval=1)
    weight = torch.ones(3, device=device, requires_grad=True)
    optimizer = OPTIMIZERS[name]([weight], lr=0.5, fused=True)
    for factor in (1.0, float("inf"), 2.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    return weight.detach().cpu()


@scenario(exact=True, slow=True, area="training")
def checkpoints_with_dropout(device: str) -> Results:
    """``torch.utils.checkpoint`` draws the same dropout again, reentrant or not: gradients are those without it."""

    def gradient(run: Callable[[nn.Module, torch.Tensor], Any]) -> torch.Tensor:
        x = torch.ones(64, device=device, requires_grad=True)
        torch.manual_seed(3)
        run(nn.Dropout(0.5), x).sum().backward()
        assert x.grad is not None
        return x.grad.cpu()

    def recomputed(reentrant: bool) -> torch.Tensor:
        found = gradient(lambda module, x: checkpoint(module, x, use_reentrant=reentrant))
        return torch.tensor(torch.equal(plain, found))

    plain = gradient(lambda module, x: module(x))
    return {
        "reentrant": recomputed(True),
        "not_reentrant": recomputed(False),
        "drops_some": torch.tensor(bool(0 < plain.count_nonzero() < 64)),
    }


@scenario(exact=True, area="training")
def scaled_gradients(device: str) -> Results:
    """``torch.amp.GradScaler`` scales a loss, skips a step with an infinite gradient, and halves its scale then."""
    kind, results = torch.device(device).type, Results()
    scalers = {
        "": (torch.amp.GradScaler(kind, init_scale=8.0, growth_interval=1), "1i2"),
        "_that_grow_after_three": (torch.amp.GradScaler(kind, init_scale=8.0, growth_interval=3), "11i1111i11i111"),
        "_that_grow_no_more": (torch.amp.GradScaler(kind, 2.0**126, growth_factor=4.0, growth_interval=1), "11i111"),
    }
    for name, (scaler, factors) in scalers.items():
        unit = 8.0 / scaler.get_scale()
        weight = torch.ones(3, device=device, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.5)
        scales = []
        for factor in factors:
            optimizer.zero_grad()
            scaler.scale((weight * (torch.inf if factor == "i" else int(factor) * unit)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        results |= {f"scales{name}": torch.tensor(scales), f"weight{name}": weight.detach().cpu()}
    return results | _scaled_in_two_dtypes(device)


def _scaled_in_two_dtypes(device: str) -> Results:
    """Return two weights and the scale after steps in which one weight has an infinite gradient, or none.

    The weights have different dtypes. A scaler looks at the gradients of each dtype separately.
    """
    weights = [torch.ones(3, dtype=d, device=device, requires_grad=True) for d in (torch.float32, torch.bfloat16)]
    optimizer = torch.optim.SGD(weights, lr=0.5)
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=8.0)
    results: Results = {}
    for name, factors in {"first": (torch.inf, 1.0), "second": (1.0, torch.inf), "none": (1.0, 1.0)}.items():
        optimizer.zero_grad()
        losses = [(weight * factor).sum() for weight, factor in zip(weights, factors, strict=True)]
        scaler.scale(losses[0] + losses[1]).backward()
        scaler.step(optimizer)
        scaler.update()
        results[f"scale_after_infinite_{name}"] = torch.tensor(scaler.get_scale())
        for which, weight in zip(("first", "second"), weights, strict=True):
            results[f"{which}_after_infinite_{name}"] = weight.detach().to("cpu", copy=True)
    return results


@scenario(area="training")
def autocast_of_written_weights(device: str) -> Results:
    """Each ``torch.autocast`` computes with the weights as they are when it is entered, whatever wrote them before."""
    kind = _autocasts(device)
    weight, bias = (on(device, t).requires_grad_() for t in (torch.eye(3) * 0.5, torch.zeros(3)))
    x = on(device, torch.arange(6.0).view(2, 3))
    results: Results = {}
    for step in range(3):
        with torch.autocast(kind, dtype=torch.bfloat16):
            product, layer = x @ weight, nn.functional.linear(x, weight, bias)
        for name, ops, found in ("product", ("matmul", "mm"), product), ("layer", ("linear", "addmm"), layer):
            results[f"{name}_{step}"] = found.detach() if _casts(device, *ops) else _no_autocast(*ops)
        with torch.no_grad():
            weight.mul_(2)
            bias.add_(1)
    return results


@scenario(exact=True, area="training")
def autocast_of_modules(device: str) -> Results:
    """Within ``torch.autocast`` a linear layer computes in bfloat16, and behind it autocast is off again."""
    kind, ops = _autocasts(device), ("linear", "addmm")
    with torch.autocast(kind, dtype=torch.bfloat16):
        found = nn.Linear(4, 2).to(device)(torch.ones(1, 4, device=device))
        inside = torch.is_autocast_enabled(kind)
    outside = torch.is_autocast_enabled(kind)
    return {
        "linear": torch.tensor(found.dtype is torch.bfloat16) if _casts(device, *ops) else _no_autocast(*ops),
        "inside": torch.tensor(inside),
        "outside": torch.tensor(outside),
    }


#: Products of a 3 x 3 matrix that are written to ``out``, a tensor of the same size.
_WRITING: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mm": lambda a, out: torch.mm(a, a, out=out),
    "addmm": lambda a, out: torch.addmm(a.t() * 8, a, a, out=out),
    "addmm_": lambda a, out: out.fill_(1).addmm_(a, a),
    "bmm": lambda a, out: torch.bmm(a[None], a[None], out=out[None]),
    "baddbmm_": lambda a, out: out[None].fill_(1).baddbmm_(a[None], a[None]),
    "addbmm": lambda a, out: torch.addbmm(a.t() * 8, a[None], a[None], out=out),
    "mv": lambda a, out: torch.mv(a, a[0], out=out[0]),
    "addmv_": lambda a, out: out[0].fill_(1).addmv_(a, a[0]),
}


@scenario(exact=True, area="training")
def autocast_leaves_what_it_is_given(device: str) -> Results:
    """``torch.autocast`` casts nothing of calls with ``out=`` and of those in place: they write float32.

    https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference
    """
    kind = _autocasts(device)
    a = on(device, 1 + torch.arange(9.0).view(3, 3) / 1024)  # needs more digits than bfloat16 has

    def written(name: str) -> torch.Tensor:
        out = torch.zeros(3, 3, device=device)
        with torch.autocast(kind, dtype=torch.bfloat16):
            _WRITING[name](a, out)
        return out

    return {name: offered(partial(written, name)) for name in _WRITING}


@scenario(exact=True, area="training")
def autocast_behind_no_grad(device: str) -> Results:
    """A weight that ``torch.autocast`` casts first under ``torch.no_grad`` and then outside of it has a gradient."""

    def gradient(where: str) -> torch.Tensor | None:
        weight = torch.eye(3, device=where).requires_grad_()
        x = torch.ones(2, 3, device=where).requires_grad_()
        with torch.autocast(torch.device(where).type, dtype=torch.bfloat16):
            with torch.no_grad():
                x @ weight
            total = (x @ weight).sum()
        if total.requires_grad:
            total.backward()
        return weight.grad

    _autocasts(device)
    if gradient("cpu") is None:
        raise NotOffered("a gradient on CPU: this torch keeps the weight that was cast under no_grad")
    found = gradient(device)
    return {"gradient": torch.zeros(0) if found is None else found.cpu()}


@scenario(exact=True, area="training")
def autocast_in_each_mode(device: str) -> Results:
    """``torch.autocast`` casts in grad mode, under ``no_grad``, and under ``inference_mode``, in either order."""
    kind, ops = _autocasts(device), ("matmul", "mm")
    modes = {"grad": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}
    results: Results = {}
    for name, mode in modes.items():
        x = torch.ones(2, 2, device=device)
        with mode(), torch.autocast(kind, dtype=torch.bfloat16):
            inside = x @ x
        with torch.autocast(kind, dtype=torch.bfloat16), mode():
            around = x @ x
        for order, found in ("inside", inside), ("around", around):
            casts = torch.tensor(found.dtype is torch.bfloat16)
            results[f"{name}.{order}"] = casts if _casts(device, *ops) else _no_autocast(*ops)
    return results


#: Calls of tensors that autocast casts, down or up, alone or in a list. Their gradients are exact in bfloat16.
CAST_CALLS: dict[str, tuple[tuple[torch.dtype, torch.dtype], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "mm": ((torch.float32, torch.float32), torch.mm),
    "linear": ((torch.float32, torch.float32), nn.functional.linear),
    "baddbmm": ((torch.float32, torch.float32), lambda a, b: torch.baddbmm(a[None], b[None], a[None])),
    "cat": ((torch.float32, torch.bfloat16), lambda a, b: torch.cat([a, b, a])),
    "stack": ((torch.bfloat16, torch.float32), lambda a, b: torch.stack((a, b), 1)),
    "addcmul": ((torch.float32, torch.bfloat16), lambda a, b: torch.addcmul(a, b, a)),
    "pow": ((torch.bfloat16, torch.bfloat16), lambda a, b: a.pow(2) * b),
    "sum": ((torch.bfloat16, torch.bfloat16), lambda a, b: a.sum(0) * b.cumsum(1)),
}


@scenario(exact=True, area="training")
def gradients_through_autocast(device: str) -> Results:
    """What ``torch.autocast`` casts, alone or in a list, has its gradient, in the dtype that it had before."""
    _autocasts(device)
    results: Results = {}
    for name, (dtypes, call) in CAST_CALLS.items():
        for i in range(len(dtypes)):
            results[f"{name}_{i}"] = offered(partial(_gradient_through_autocast, device, dtypes, call, i))
    return results


def _gradient_through_autocast(
    device: str, dtypes: Sequence[torch.dtype], call: Callable[..., torch.Tensor], of: int
) -> torch.Tensor:
    """Return the gradient of an argument of a call under autocast, an empty tensor if it has none."""
    numbers = torch.tensor([[1.0, 2.0], [-1.0, 3.0]])
    leaves = [on(device, numbers.to(dtype, copy=True)).requires_grad_() for dtype in dtypes]
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        found = call(*leaves)
    if found.requires_grad:
        found.sum().backward()
    gradient = leaves[of].grad
    return torch.zeros(0) if gradient is None else gradient.cpu()


def _autocasts(device: str) -> str:
    """Return the type of a device. Raises NotOffered if it has no autocast."""
    kind = str(torch.device(device).type)
    if not torch.amp.is_autocast_available(kind):
        raise NotOffered("autocast")
    return kind


def _casts(device: str, *ops: str) -> bool:
    """Return whether one of the ops has an autocast kernel on a device. Backends need not cover torch's lists."""
    return any(autocasts(op, torch.device(device).type) for op in ops)


def _no_autocast(*ops: str) -> NotOffered:
    return NotOffered(f"autocast of {' or '.join(ops)}")
