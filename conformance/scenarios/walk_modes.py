"""Steps about the modes and settings of torch, ops that must leave them, and errors."""

from __future__ import annotations

from conformance.scenarios.walk_kinds import device_of, kind
from conformance.scenarios.walk_state import State, Step

#: The areas of the kinds of steps.
MODES = "modes"
OPS = "ops"
ERRORS = "errors"


@kind(MODES)
def in_no_grad(s: State, step: Step) -> None:
    """Begin a block with gradients on or off."""
    grad = step.pick("grad", (True, False))
    s.open(f"with torch.set_grad_enabled({grad}):", "grad")
    s.thread.grad = grad


@kind(MODES)
def in_autocast(s: State, step: Step) -> None:
    """Begin a block with autocast on or off."""
    dtype = step.pick("dtype", ("torch.bfloat16", "torch.float16", ""))
    words = f"dtype={dtype}" if dtype else "enabled=False"
    s.open(f'with torch.autocast("{s.kind}", {words}):', "autocast")
    s.thread.autocast = dtype


#: Settings of torch: the call that sets each, the call that asks for it, and its values.
_SETTINGS = {
    "threads": ("torch.set_num_threads({})", "torch.get_num_threads()", ("1", "2", "3")),
    "dtype": ("torch.set_default_dtype({})", "torch.get_default_dtype()", ("torch.float32", "torch.float64")),
    "deterministic": (
        "torch.use_deterministic_algorithms({}, warn_only=True)", "torch.are_deterministic_algorithms_enabled()",
        ("False", "True"),
    ),
    "precision": (
        "torch.set_float32_matmul_precision({})", "torch.get_float32_matmul_precision()", ('"highest"', '"high"'),
    ),
}  # fmt: skip


@kind(MODES, weight=2)
def change_setting(s: State, step: Step) -> None:
    """Change a setting of torch in the main thread. Other threads have a number of threads of their own.

    The number of threads is changed in new processes only. A forked process lacks the threads of its parent, and OpenMP
    would wait for them.
    """
    s.must_be_in_main_thread()
    name = step.pick("setting", [name for name in _SETTINGS if s.anew or name != "threads"])
    value = step.pick("value", _SETTINGS[name][2])
    s.write(_SETTINGS[name][0].format(value))
    s.settings[name] = value


@kind(MODES, weight=2)
def settings(s: State, _: Step) -> None:
    """Ask for the settings of torch that were changed."""
    s.must_be_in_main_thread()
    for name, value in s.settings.items():
        s.write(f"assert {_SETTINGS[name][1]} == {value}")


#: Ops of all kinds. Backends have no kernels for many of them. X is a square matrix of float32.
_OPS = (
    "X.lgamma()", "X.erfinv()", "X.cumsum(0)", "X.sort()", "X.topk(2)", "X.unique()", "X.nonzero()", "X.histc(4)",
    "X.logsumexp(0)", "X.cumprod(1)", "X.kthvalue(1)", "X.mode()", "X.renorm(2, 0, 1.0)", "X.trace()", "X.tril()",
    "X.logit(0.1)", "X.softmax(1)", "X.median()", "X.index_select(0, X[0].long())",
    "torch.linalg.det(X)", "torch.linalg.qr(X)", "torch.cdist(X, X)", "torch.bincount(X.flatten().abs().long())",
    "torch.searchsorted(X[0].sort().values, X)", "torch.nn.functional.conv2d(X[None, None], X[None, None])",
    "torch.nn.functional.embedding(X[0].long(), X)",
    "torch.nn.functional.max_pool2d(X[None, None], 2)", "torch.nn.functional.interpolate(X[None, None], size=5)",
    "torch.nn.functional.layer_norm(X, (4,))", "torch.nn.functional.cross_entropy(X, X.softmax(1))",
)  # fmt: skip


@kind(OPS, weight=3)
def call_op(s: State, step: Step) -> None:
    """Call an op. Later steps check that it has changed nothing else."""
    device = device_of(s, step)
    s.write(f"X = torch.eye(4, dtype=torch.float32, device={s.name(device)})", step.pick("op", _OPS))
    s.order.submit(s.current(device))


@kind(MODES, weight=2)
def modes(s: State, step: Step) -> None:
    """Ask for the modes, and check the result of an op in them."""
    thread, there = s.thread, s.name(device_of(s, step))
    s.write(f"assert torch.is_grad_enabled() is {thread.grad}",
            f'assert torch.is_autocast_enabled("{s.kind}") is {bool(thread.autocast)}',
            f"x = torch.ones((2, 2), dtype=torch.float32, device={there}, requires_grad=True)",
            "y = x @ x",
            f"assert y.requires_grad is {thread.grad} and y.dtype == {thread.autocast or 'x.dtype'}")  # fmt: skip


#: A call that must raise. Its message says how much memory there is.
_TOO_LARGE = "torch.empty(1 << 60, dtype=torch.uint8, device=D)"
#: Calls that must raise. D stands for a device.
_WRONG = (
    "torch.ones(3, device=D) + torch.ones(4, device=D)", "torch.ones((2, 3), device=D) @ torch.ones((2, 3), device=D)",
    "torch.ones(3, device=D).view(2)", "torch.cat([torch.ones((2, 3), device=D), torch.ones((3, 2), device=D)])",
    "torch.ones(3, device=D).sum(2)", "torch.linalg.cholesky(-torch.eye(3, device=D))", _TOO_LARGE,
    "torch.accelerator.set_device_index(torch.accelerator.device_count())",
    "torch.accelerator.set_device_index(torch.accelerator.device_count() + 7)",
    "torch.accelerator.set_device_index(torch.accelerator.device_count() + 60)",
)  # fmt: skip


@kind(ERRORS, "new_tensor", weight=4)
def refused(s: State, step: Step) -> None:
    """Make a call that must raise and leave everything as it was. A repeated call must raise the same error."""
    wrong, name = step.pick("call", _WRONG), f"m{step.number}"
    call = wrong.replace("D", s.name(device_of(s, step)))
    s.write(f"{name} = error_of(lambda: {call})")
    if call in s.errors and wrong != _TOO_LARGE:
        s.write(f"assert {name} == {s.errors[call]}")
    s.errors.setdefault(call, name)
