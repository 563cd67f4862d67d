"""Fused optimizer steps."""

from __future__ import annotations

from typing import Any

from conformance.ops.family import Family, Own, T, Tolerance, own, words

_LIST = (T((3, 4)), T((5,)))
_POSITIVE = tuple(T(t.shape, "positive") for t in _LIST)
_STEPS = (T((), (3.0,), "float32"), T((), (7.0,), "float32"))
_ADAM = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}
_SGD = {"weight_decay": 0.1, "momentum": 0.9, "dampening": 0.0, "nesterov": True, "maximize": False}
_ADAGRAD = {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False}


def _steps(operator: str, *lists: Any, **options: Any) -> tuple[Own, ...]:
    """Return the in-place and the functional form, with the learning rate as a number and as a tensor."""
    rate = T((), (0.01,), "float32")
    return tuple(
        own(f"{operator}{form}", "two_parameters", *lists, lr=lr, **options)
        for form, lr in (("_", 0.01), ("_.tensor_lr", rate), ("", 0.01), (".tensor_lr", rate))
    )


FAMILY = Family(
    "optimizer",
    words("_fused_adagrad _fused_adam _fused_adamw _fused_sgd"),
    {"tolerance": Tolerance(8.0, 4.0)},
    # In half dtypes, CPU's step over the rest of a vector reads the elements behind the momentum.
    {"_fused_sgd*": {"doubtful": ("values",)}},
    samples=(
        *_steps("_fused_adam", _LIST, _LIST, _LIST, _POSITIVE, (), _STEPS, amsgrad=False, **_ADAM),
        *_steps("_fused_adamw", _LIST, _LIST, _LIST, _POSITIVE, _POSITIVE, _STEPS, amsgrad=True, **_ADAM),
        *_steps("_fused_sgd", _LIST, _LIST, _LIST, is_first_step=False, **_SGD),
        *_steps("_fused_adagrad", _LIST, _LIST, _POSITIVE, _STEPS, **_ADAGRAD),
    ),
)
