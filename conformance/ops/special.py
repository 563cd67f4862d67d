"""Special functions of mathematics."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Family, Tolerance, words

FAMILY = Family(
    "special",
    words(
        "special_airy_ai special_bessel_* special_chebyshev_* special_digamma special_entr special_erf* "
        "special_exp* special_gamma* special_hermite_* special_i0* special_i1* special_laguerre_* "
        "special_legendre_* special_log1p special_log_ndtr special_logit special_modified_* "
        "special_multigammaln special_ndtr special_ndtri special_polygamma special_psi special_scaled_* "
        "special_shifted_* special_sinc special_spherical_* special_xlog1py special_xlogy special_zeta"
    ),
    {"tolerance": Tolerance(16.0, 4.0)},
    # The degrees in the samples can be negative. In unsigned dtypes these are billions, and CPU's loops take one step
    # each.
    but={
        # torch's own kernel for all devices computes (1 + erf(x)) / 2, which cancels left of zero.
        "special_ndtr": {"tolerance": Tolerance(16.0, 4.0, Accumulation.CANCELS)},
        # For x = NaN, CPU's kernels return an uninitialized number.
        # CPU of torch below 2.13 takes minutes for the polynomial of degree 2**31.
        "special_*polynomial*": {"undefined_in": ("uint32", "uint64"), "fixed": ("x", "n")},
    },
)
