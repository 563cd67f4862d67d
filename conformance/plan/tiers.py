"""Tiers: how much of the matrix a run takes. Pure.

The smoke tier varies one thing at a time. An overload with a native kernel has every layout in one dtype, and every
dtype in one layout. Other overloads share code, so each has only a few cells, which differ between overloads.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance import layouts
from conformance.layouts import CONTEXTS, DRAWN, GENERATED
from conformance.vocabulary import CellId, Route

# The dtype whose cells have every layout: the first of these that an overload has, else the first by name.
FIRST_DTYPES = ("float32", "int64", "bool")
# The layouts that every dtype has in a thinned tier.
_OF_EVERY_DTYPE = ("contiguous", "values")


@dataclass(frozen=True)
class Share:
    """The cells and samples that a tier takes of one overload. None takes all."""

    one_at_a_time: bool = False  # not every pair of a dtype and a layout, but those below
    layouts: int | None = None  # of the first dtype, besides contiguous and those of generated samples
    dtypes: int | None = None  # besides the first
    samples: Mapping[str, int] = field(default_factory=dict)  # the most samples of a cell, by layout; "" for the others

    def of(self, cells: Sequence[CellId]) -> list[CellId]:
        """Return the cells of one overload that are taken, in their order. Contexts' cells are all taken."""
        plain = [c for c in cells if c.layout not in CONTEXTS]
        if not (self.one_at_a_time and plain):
            return list(cells)
        first, *others = sorted({c.dtype for c in plain}, key=_rank)
        always = {"contiguous", *GENERATED} - (DRAWN if self.layouts is not None else set())
        own = [c.layout for c in plain if c.dtype == first and c.layout not in always]
        named = cells[0].overload
        kept_dtypes = {first, *_some(others, self.dtypes, named)}
        kept_layouts = {*always, *_some(own, self.layouts, named)}
        return [
            c
            for c in cells
            if c.layout in CONTEXTS
            or (c.dtype == first and c.layout in kept_layouts)
            or (c.dtype in kept_dtypes and c.layout in _OF_EVERY_DTYPE)
        ]

    def most(self, layout: str) -> int | None:
        """Return the most samples of a cell of a layout, or None for all."""
        return self.samples.get(layout, self.samples.get(""))


def _rank(dtype: str) -> tuple[int, str]:
    return (FIRST_DTYPES.index(dtype) if dtype in FIRST_DTYPES else len(FIRST_DTYPES)), dtype


def _some(names: Sequence[str], most: int | None, overload: str) -> Iterator[str]:
    """Yield at most ``most`` of the names, starting at a place that depends on the overload."""
    start = zlib.crc32(overload.encode())
    for i in range(len(names) if most is None else min(most, len(names))):
        yield names[(start + i) % len(names)]


@dataclass(frozen=True)
class Tier:
    """How much of the matrix a run takes."""

    name: str
    dtypes: frozenset[str] | None
    layouts: frozenset[str] | None
    slow_scenarios: bool = True  # else only those that take milliseconds
    compiled_scenarios: bool = False  # also those that call torch.compile
    chosen: frozenset[tuple[str, str]] = frozenset()  # overloads with cells of a context that is not in ``layouts``
    shares: Mapping[Route, Share] = field(default_factory=dict)  # by how an overload is served; else everything

    def has_scenario(self, slow: bool, compiles: bool) -> bool:
        """Return whether a scenario that is slow, or that compiles, is in this tier."""
        return (self.slow_scenarios or not slow) and (self.compiled_scenarios or not compiles)

    def has_context(self, name: str, overload: str) -> bool:
        """Return whether an overload has cells of a context in this tier."""
        return self.layouts is None or name in self.layouts or (name, overload) in self.chosen

    def share(self, route: Route, *, only_way: bool = False) -> Share:
        """Return the share of an overload with this route.

        ``only_way``: no other overload reaches its kernel. A tier that takes all of a native overload also takes all of
        this one.
        """
        as_native = only_way and Route.NATIVE not in self.shares
        return Share() if as_native else self.shares.get(route, Share())


# The CPU kernels that a fallback calls run on CPU anyway, and the overloads that a composite calls have samples of
# their own. But only composites reach kernels that have no overload of their own, such as those of conversions: all
# values are tried there. Values and variants are tiny: for a fallback, all of them together cost less than the sizes
# that are left out.
_GENERATED = {"sizes": 6, "sizes_gap": 6, "sizes_strided": 2, "sizes_channels_last": 2}
_FULL = {
    Route.FALLBACK: Share(samples=_GENERATED | {"sizes": 12}),
    Route.COMPOSITE: Share(samples=_GENERATED | {"variants": 24, "variants_strided": 6, "values_strided": 24}),
}
_SMOKE = dict.fromkeys(Route, Share(True, layouts=1, dtypes=1, samples={"": 1, "variants": 2})) | {
    Route.NATIVE: Share(
        True,
        samples={
            "": 2,
            "sizes": 6,
            "sizes_gap": 3,
            "sizes_strided": 3,
            "sizes_channels_last": 2,
            "values": 12,
            "values_strided": 4,
            "variants": 24,
            "variants_strided": 8,
        },
    ),
}
# The cells of contexts in the smoke tier: those that find the planted faults of contexts in the fewest milliseconds. In
# the contexts that are left out (backward, decomposed, fake, forward_ad, gradcheck, gradgrad, jacrev, overwritten)
# torch first loads modules for seconds.
_CHOSEN = {
    "second_device": ("_softmax", "erfinv.out", "_histogramdd_bin_edges"), "thread": ("neg.out", "cumsum.out"),
    "stream": ("cat.out", "erfinv"), "second_stream": ("mean.out",),
    "after_error": ("neg.out",), "reused": ("addbmm", "masked_scatter"),
    "inference_mode": ("unfold", "embedding"),
    "autocast": ("group_norm", "addcmul", "prelu", "log_softmax.int", "scaled_dot_product_attention"),
    "vmap": ("_logcumsumexp", "_standard_gamma_grad"), "functionalize": ("polygamma_", "_cummax_helper"),
    "deterministic": (
        "empty_like", "resize_", "scatter_add.out", "_index_put_impl_", "index_add.out", "cumsum.out",
    ),
    "default_dtype": ("exp",),
    "no_grad": ("celu", "fill_.Scalar"), "copied": ("celu", "_logcumsumexp"),
}  # fmt: skip
_PLAIN = frozenset(layouts.LAYOUTS) - frozenset(CONTEXTS)
# Contexts of the full tier: `reused` looks for outdated caches of kernels, as the layout `sequence` does.
_CACHES = {"reused"}

TIERS = {
    "wide": Tier("wide", None, None, compiled_scenarios=True, shares=_FULL),
    "full": Tier("full", None, _PLAIN | _CACHES, shares=_FULL),
    "smoke": Tier(
        "smoke",
        None,
        _PLAIN - {"sizes_large"},
        slow_scenarios=False,
        chosen=frozenset((name, overload) for name, overloads in _CHOSEN.items() for overload in overloads),
        shares=_SMOKE,
    ),
}
WIDEST = TIERS["wide"]
