"""Reductions equal CPU in every dtype and layout, over any dims, with keepdim, dtype and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from against_cpu import ALL, FLOATS, LAYOUTS, RARE, check, values

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.complex32: 2e-3}
LAYOUTS_AND_EXPANDED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **LAYOUTS,
    "expanded": lambda t: t[:1].expand(t.shape) if t.dim() else t.clone(),
    "overlapping": lambda t: t.clone().as_strided(t.shape, [1] * t.dim()),
}
layouts = pytest.mark.parametrize("layout", LAYOUTS_AND_EXPANDED)
WIDE = [dtype for dtype in ALL + RARE if dtype not in FLOAT8]
dtypes = pytest.mark.parametrize("dtype", WIDE, ids=str)
SHAPES = [(2, 3, 5), (7,), (), (0,), (2, 0, 3)]
nan, inf = float("nan"), float("inf")

BY_DIMS: dict[str, Callable[..., Any]] = {
    "sum": torch.sum, "nansum": torch.nansum, "mean": torch.mean, "amax": torch.amax, "amin": torch.amin,
    "any": torch.any, "all": torch.all, "var": torch.var, "std": torch.std, "var_mean": torch.var_mean,
    "std_mean": torch.std_mean, "norm": torch.linalg.vector_norm, "logsumexp": torch.logsumexp,
}  # fmt: skip
BY_DIM: dict[str, Callable[..., Any]] = {
    "prod": torch.prod, "max": torch.max, "min": torch.min, "argmax": torch.argmax, "argmin": torch.argmin,
    "aminmax": lambda t, dim, keepdim: torch.aminmax(t, dim=dim, keepdim=keepdim),
    "count_nonzero": lambda t, dim, _keepdim: torch.count_nonzero(t, dim),
}  # fmt: skip
TO_SCALAR: dict[str, Callable[..., Any]] = {
    **{name: call for name, call in BY_DIMS.items() if name not in ("norm", "logsumexp")},
    **{name: call for name, call in BY_DIM.items() if name != "aminmax"},
    "aminmax": torch.aminmax, "norm": torch.norm, "count_nonzero": torch.count_nonzero,
}  # fmt: skip


def compare(call: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    dtypes_met = [a.dtype for a in args if isinstance(a, torch.Tensor)] + [kwargs.get("dtype")]
    rtol = max(TOLERANCE.get(dtype, 2e-6) for dtype in dtypes_met)
    check(call, *args, rtol=rtol, atol=rtol, **kwargs)


@dtypes
@layouts
def test_reductions_over_dims_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS_AND_EXPANDED[layout](values(*shape, dtype=dtype))
        for call in BY_DIMS.values():
            for dims in (0, -1, (0, -1), (1,), (), (0, 0), 5):
                compare(call, self, dims, keepdim=False)
            compare(call, self, (0, 2), keepdim=True)


@dtypes
@layouts
def test_reductions_over_one_dim_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS_AND_EXPANDED[layout](values(*shape, dtype=dtype))
        for call in BY_DIM.values():
            for dim, keepdim in ((0, False), (-1, True), (1, False), (7, False)):
                compare(call, self, dim, keepdim)


@dtypes
@layouts
def test_reductions_over_all_elements_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    for shape in SHAPES if layout == "contiguous" else SHAPES[:1]:
        self = LAYOUTS_AND_EXPANDED[layout](values(*shape, dtype=dtype))
        for call in TO_SCALAR.values():
            compare(call, self)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bfloat16, torch.float32, torch.complex64, torch.bool], ids=str)
def test_reductions_with_a_dtype_argument_equal_cpu(dtype: torch.dtype) -> None:
    for target in (torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64, torch.bool):
        for call in (torch.sum, torch.mean, torch.prod):
            compare(call, values(3, 4, dtype=dtype), 1, dtype=target)
        compare(torch.linalg.vector_norm, values(3, 4, dtype=dtype), 2, 1, dtype=target)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, *FLOATS, torch.complex64], ids=str)
def test_reductions_into_an_out_equal_cpu(dtype: torch.dtype) -> None:
    self = values(3, 4, dtype=dtype)
    for target in (dtype, torch.int64, torch.bool, torch.float32):
        outs = (torch.empty(0, dtype=target), torch.zeros(3, dtype=target), torch.zeros(3, 2, dtype=target)[:, 1])
        for out in outs:
            for call in (torch.sum, torch.mean, torch.prod, torch.amax, torch.any, torch.all, torch.var, torch.argmax):
                compare(call, self, 1, out=out)
            compare(torch.nansum, self, 1, out=out)
            compare(torch.linalg.vector_norm, self, 2, 1, out=out)
            compare(torch.max, self, 1, out=(out, torch.empty(0, dtype=torch.int64)))
        compare(torch.max, self, out=torch.empty((), dtype=target))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reductions_of_nan_and_infinity_equal_cpu(dtype: torch.dtype) -> None:
    rows = [[1, nan, 3, nan], [inf, 2, -inf, 0], [-inf, -inf, -inf, -inf], [inf, 1, 2, 3], [2, 5, 5, 2]]
    self = torch.tensor(rows, dtype=dtype)
    for call in {**BY_DIM, **BY_DIMS}.values():
        compare(call, self, 1, keepdim=False)
        compare(call, self, 0, keepdim=True)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64, torch.complex128, torch.complex32], ids=str)
def test_norms_and_variances_with_corrections_equal_cpu(dtype: torch.dtype) -> None:
    self = values(3, 4, dtype=dtype) - values(3, 4, dtype=dtype, seed=3)
    for order in (0, 1, 2, 3, 0.5, -1, inf, -inf):
        compare(torch.linalg.vector_norm, self, order, 1)
        compare(torch.norm, self, order, 1, True)
    for correction in (0, 1, 2.5, 4, 5):
        compare(torch.var, self, 1, correction=correction)
        compare(torch.std_mean, self, (0, 1), correction=correction)


def test_float_sums_are_at_least_as_exact_as_on_cpu() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        self = torch.linspace(0.1, 1, 4001).to(dtype)
        exact = self.double().sum()
        cpu, npu = self.sum().double(), self.to("npu").sum().cpu().double()
        assert abs(npu - exact) <= abs(cpu - exact)


def test_a_bool_stored_as_two_counts_as_true() -> None:
    self = torch.tensor([0, 2, 1], dtype=torch.uint8, device="npu").view(torch.bool)
    assert self.any().item()
    assert self[1:].all().item()
    assert torch.count_nonzero(self).item() == 2


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_reductions_that_cpu_has_equal_cpu(dtype: torch.dtype) -> None:
    for call in (torch.any, torch.all, torch.count_nonzero):
        check(call, values(3, 4, dtype=dtype), 1)
    check(torch.linalg.vector_norm, values(1, dtype=dtype)[0])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool, *FLOATS], ids=str)
def test_max_and_min_of_an_empty_tensor_raise_as_on_cpu(dtype: torch.dtype) -> None:
    for call in (torch.max, torch.min):
        check(call, values(0, dtype=dtype), out=torch.empty((), dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64], ids=str)
def test_nansum_into_a_dtype_without_nan_leaves_them_out(dtype: torch.dtype) -> None:
    x = torch.tensor([[float("nan"), 0.0], [1.0, 2.0], [float("nan"), 3.0]])
    assert torch.equal(torch.nansum(x.to("npu"), 1, dtype=dtype).cpu(), torch.nansum(x, 1, dtype=dtype))
