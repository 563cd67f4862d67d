"""Facts about ops that a schema does not state, by overload. One family per file, each op in exactly one family."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import import_module

from conformance.ops.family import Family, OpFacts, Own, operator_of

FAMILIES = (
    "activation", "attention", "comparison", "concatenation", "convolution", "copying", "dropout", "embedding",
    "factory", "fft", "foreach", "indexing", "linalg", "loss", "masking", "matmul", "normalization", "optimizer",
    "padding", "pointwise_binary", "pointwise_unary", "pooling", "quantized", "random", "reduction", "rnn",
    "scatter_gather", "segment", "sorting", "sparse", "special", "upsampling", "views", "misc",
)  # fmt: skip


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Return every family, in order of name; ``misc``, which takes all ops that no other family claims, is last."""
    return tuple(import_module(f"conformance.ops.{name}").FAMILY for name in FAMILIES)


@cache
def facts(overload: str) -> OpFacts:
    """Return the facts of an overload, e.g. ``masked_fill_.Scalar``. A name in no family has those of ``misc``."""
    return family_of(operator_of(overload)).facts_of(overload)


@cache
def family_of(operator: str) -> Family:
    """Return the family of an operator, e.g. ``masked_fill``."""
    exact = _by_operator().get(operator)
    return exact or next((f for pattern, f in _by_pattern() if fnmatch.fnmatchcase(operator, pattern)), families()[-1])


@lru_cache(maxsize=1)
def _by_operator() -> dict[str, Family]:
    return {op: family for family in families() for op in family.ops if "*" not in op}


@lru_cache(maxsize=1)
def _by_pattern() -> list[tuple[str, Family]]:
    return [(op, family) for family in families() for op in family.ops if "*" in op]


def own_samples() -> Iterable[tuple[Family, Own]]:
    """Return our own samples of every family."""
    return [(family, sample) for family in families() for sample in family.samples]


@lru_cache(maxsize=1)
def configurations() -> tuple[tuple[Family, Own], ...]:
    """Return the configurations of every family, see :class:`Family`."""
    return tuple((family, sample) for family in families() for sample in family.configurations)
