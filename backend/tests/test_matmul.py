"""Matrix products equal CPU in every dtype and layout, with beta, alpha, conjugation and broadcast."""

from __future__ import annotations

import pytest
import torch
from against_cpu import LAYOUTS, check, values
from test_reduce import FLOAT8, WIDE, compare

nan = float("nan")
SIZES = ((3, 4, 5), (1, 1, 1), (2, 0, 3), (0, 4, 2), (2, 3, 0))
PAIRS = ((2, 3), (0, 1), (1, 0), (0.5, 2), (0, 0))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrix_products_equal_cpu(dtype: torch.dtype, layout: str) -> None:
    place = LAYOUTS[layout]
    for m, k, n in SIZES:
        a, b = place(values(2, m, k, dtype=dtype)), place(values(2, k, n, dtype=dtype, seed=3))
        compare(torch.mm, a[0], b[1])
        compare(torch.bmm, a, b)
        compare(torch.bmm, a[:1].expand(2, m, k), b)
        compare(torch.mv, a[0], b[0, :, 0] if n else values(k, dtype=dtype))
        compare(torch.mm, a[0], b[1], out=torch.empty(0, dtype=dtype))
        compare(torch.matmul, a, b[0])
        for beta, alpha in PAIRS:
            for self in (values(m, n, dtype=dtype), values(n, dtype=dtype)):
                compare(torch.addmm, self, a[0], b[0], beta=beta, alpha=alpha)
                if k > 0 or dtype is not torch.bool:
                    compare(torch.addbmm, self, a, b, beta=beta, alpha=alpha)
                compare(torch.baddbmm, self, a, b, beta=beta, alpha=alpha)
            compare(torch.Tensor.addmm_, place(values(m, n, dtype=dtype)), a[0], b[0], beta=beta, alpha=alpha)
            compare(torch.addmv, values(m, dtype=dtype), a[1], values(k, dtype=dtype), beta=beta, alpha=alpha)


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_vector_products_equal_cpu(dtype: torch.dtype) -> None:
    for n in (0, 1, 9):
        a, b = values(n, dtype=dtype), values(2 * n, dtype=dtype, seed=2)[::2]
        for call in (torch.dot, torch.vdot, torch.outer, torch.inner):
            compare(call, a, b)
    check(torch.dot, values(3, dtype=dtype), values(4, dtype=dtype))
    check(torch.dot, values(3, dtype=dtype), values(3, dtype=torch.float64))


def test_products_of_wrong_shapes_and_dtypes_raise_as_on_cpu() -> None:
    check(torch.mm, values(2, 3), values(2, 3))
    check(torch.mm, values(2, 3), values(3, 2, dtype=torch.float64))
    check(torch.mm, values(3), values(3, 2))
    check(torch.bmm, values(2, 2, 3), values(3, 3, 2))
    check(torch.bmm, values(2, 3), values(3, 2))
    check(torch.addmm, values(5), values(2, 3), values(3, 2))
    check(torch.addbmm, values(2, 2), values(2, 2, 3), values(3, 3, 2))
    check(torch.baddbmm, values(2, 2, 2, dtype=torch.int32), values(2, 2, 3), values(2, 3, 2))
    check(torch.addmv, values(2), values(2, 3), values(2))


@pytest.mark.parametrize("self", [torch.tensor(2.5), torch.tensor([1, 2])], ids=["number", "vector"])
def test_addmv_takes_a_self_of_another_dtype_where_cpu_does(self: torch.Tensor) -> None:
    check(torch.addmv, self, values(2, 3, dtype=torch.int64), values(3, dtype=torch.int64))


@pytest.mark.parametrize(("rows", "columns"), [(0, 4), (5, 0)])
@pytest.mark.parametrize("beta", [0, 2, 2.5])
def test_addmv_over_nothing_has_the_size_of_self(rows: int, columns: int, beta: float) -> None:
    for self in (torch.tensor(3), torch.tensor(3.0)):
        matrix, vector = torch.ones(rows, columns, dtype=self.dtype), torch.ones(columns, dtype=self.dtype)
        for out in (torch.empty(0, dtype=self.dtype), self.clone()):
            check(torch.addmv, self, matrix, vector, beta=beta, out=out)
    check(torch.mm, values(2, 3), values(3, 2), out=torch.empty(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_products_of_conjugated_matrices_equal_cpu(dtype: torch.dtype) -> None:
    a = torch.complex(values(3, 4), values(3, 4, seed=5)).to(dtype)
    b = torch.complex(values(4, 3), values(4, 3, seed=2)).to(dtype)
    compare(lambda x, y: x.conj() @ y, a, b)
    compare(lambda x, y: torch.mm(y.mH, x.mH), a, b)
    compare(lambda x, y: torch.vdot(x[0], y[:, 0]) + torch.dot(x[0].conj(), y[:, 1]), a, b)
    compare(lambda x, y: torch.addmm(x.mT.conj() @ x, y, x, beta=1j, alpha=2), a, b)


def test_products_with_beta_zero_ignore_nan() -> None:
    bad = torch.full((2, 2), nan)
    compare(torch.addmm, bad, values(2, 3), values(3, 2), beta=0)
    compare(torch.baddbmm, bad, values(2, 2, 3), values(2, 3, 2), beta=0)
    compare(torch.addbmm, bad, values(2, 2, 3), values(2, 3, 2), beta=0)
    compare(torch.addmv, bad[0], values(2, 3), values(3), beta=0)


def test_scaled_dot_product_attention_equals_cpu() -> None:
    q, k, v = (values(1, 2, 6, 4, seed=s) / 8 for s in (1, 2, 3))
    attention = torch.nn.functional.scaled_dot_product_attention
    compare(attention, q, k, v)
    compare(attention, q, k, v, is_causal=True)
    compare(attention, q, k, v, attn_mask=torch.ones(6, 6).tril().bool())
    compare(attention, q, k, v, attn_mask=torch.zeros(1, 1, 6, 6).expand(1, 2, 6, 6))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_products_are_rounded_once(dtype: torch.dtype) -> None:
    a, b = values(3, 4, dtype=dtype), values(4, 5, dtype=dtype, seed=3)
    exact = (a.double() @ b.double()).to(dtype)
    assert torch.equal((a.to("npu") @ b.to("npu")).cpu().view(torch.uint8), exact.view(torch.uint8))


@pytest.mark.parametrize("dtype", WIDE, ids=str)
def test_addr_equals_cpu(dtype: torch.dtype) -> None:
    a, b = values(3, dtype=dtype), values(8, dtype=dtype, seed=2)[::2]
    for self in (values(3, 4, dtype=dtype), values(4, 3, dtype=dtype).t(), values(4, dtype=dtype), values(2)):
        for beta, alpha in ((1, 1), (0, 2), (True, 1), (0.5, 1)):
            compare(torch.addr, self, a, b, beta=beta, alpha=alpha)
            compare(torch.Tensor.addr_, self, a, b, beta=beta, alpha=alpha)
    compare(torch.addr, values(3, 4, dtype=dtype), a, b, out=torch.empty(0, dtype=dtype))
    compare(torch.addr, values(3, 4), a, b)


def test_products_of_integers_wrap_around_as_on_cpu() -> None:
    large = torch.full((2, 2), 2**62 + 1)
    for beta, alpha in ((1, 1), (3, 5), (-7, 2**40)):  # a sanitizer reports undefined overflow
        compare(torch.addmm, large, large, large, beta=beta, alpha=alpha)


def test_addbmm_adds_a_number_of_another_dtype_in_that_of_out() -> None:
    number, out = torch.tensor(1.5, dtype=torch.float64), torch.empty(2, 2)
    a, b = values(3, 2, 4), values(3, 4, 2, seed=2)
    theirs = torch.addbmm(number, a, b, out=out.clone())
    ours = torch.addbmm(number.to("npu"), a.to("npu"), b.to("npu"), out=out.to("npu"))
    torch.testing.assert_close(ours.cpu(), theirs)
