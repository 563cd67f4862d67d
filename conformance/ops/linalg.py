"""Factorizations, and the ops that solve equations with them."""

from __future__ import annotations

from conformance.ops.family import EXACT, ITERATED, Equivalence, Family, T, own, words

_SPD = (4.0, 1.0, 0.5, 1.0, 3.0, 0.25, 0.5, 0.25, 2.0)
_FACTORS = {"factorizes": True}
_SINGULAR = {"factorizes": True, "singular_values": 1}
_VECTORS = {"equivalence": ((1, Equivalence.UP_TO_PHASE),)}

FAMILY = Family(
    "linalg",
    words(
        "cholesky cholesky_inverse cholesky_solve _cholesky_solve_helper det geqrf inverse linalg_cholesky "
        "linalg_cholesky_ex linalg_cond linalg_cross cross linalg_det _linalg_det linalg_eig linalg_eigh "
        "_linalg_eigh linalg_eigvals _linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv "
        "linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lstsq linalg_lu "
        "linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_matrix_norm "
        "linalg_matrix_power linalg_matrix_rank linalg_norm linalg_pinv linalg_qr linalg_slogdet "
        "_linalg_slogdet linalg_solve linalg_solve_ex _linalg_solve_ex linalg_solve_triangular linalg_svd "
        "_linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander vander logdet lu_solve "
        "lu_unpack _lu_with_info matrix_exp matrix_exp_backward matrix_power orgqr ormqr pinverse qr slogdet "
        "svd triangular_solve _linalg_check_errors tril triu tril_indices triu_indices block_diag"
    ),
    {"tolerance": ITERATED},
    but={
        # Repeated or moved pivots of one matrix are not valid for another: LAPACK uses them as positions in memory.
        "linalg_ldl_solve": {**_FACTORS, "overruns": ("expanded", "overlapping", "mixed")},
        **{name: {"tolerance": EXACT} for name in words("tril triu tril_indices triu_indices lu_unpack block_diag")},
        # The kernel assumes that the batches of out= are evenly spaced. In a large tensor, it then goes far past the
        # storage.
        **{name: {"tolerance": EXACT, "overruns": ("sizes_strided",)} for name in words("tril.out triu.out")},
        **dict.fromkeys(
            words(
                "cholesky cholesky_inverse cholesky_solve _cholesky_solve_helper det geqrf inverse linalg_cholesky "
                "linalg_cholesky_ex linalg_cond linalg_det _linalg_det linalg_eigvalsh linalg_householder_product "
                "linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_lu linalg_lu_factor "
                "linalg_lu_factor_ex linalg_lu_solve linalg_matrix_rank linalg_pinv linalg_qr linalg_slogdet "
                "_linalg_slogdet linalg_solve linalg_solve_ex _linalg_solve_ex linalg_svdvals logdet lu_solve "
                "_lu_with_info orgqr ormqr pinverse qr slogdet"
            ),
            _FACTORS,
        ),
        **{name: {**_FACTORS, **_VECTORS, "eigenvalues": 0} for name in words("linalg_eigh _linalg_eigh")},
        # With NaN in a matrix, LAPACK writes outside its arguments, and nothing checks for NaN before.
        "linalg_eig": {**_VECTORS, "fixed": ("self",)},
        **{name: {"fixed": ("self",)} for name in words("linalg_eigvals _linalg_eigvals")},
        **{
            name: {**_SINGULAR, "equivalence": ((0, Equivalence.UP_TO_PHASE), (2, Equivalence.ROWS_UP_TO_PHASE))}
            for name in words("linalg_svd _linalg_svd")
        },
        "svd": {**_SINGULAR, "equivalence": ((0, Equivalence.UP_TO_PHASE), (2, Equivalence.UP_TO_PHASE))},
        # The rank and the singular values are only given for some drivers.
        "linalg_lstsq": {
            **_FACTORS,
            "undefined": (2, 3),
            "unstable": "LAPACK's drivers round by where their workspace lies",
        },
    },
    samples=(
        own("_cholesky_solve_helper", "lower", T((3, 2)), T((3, 3), _SPD), False, bases="float32 complex64"),
        own("_linalg_check_errors", "none", T((2,), (0, 0), "int32"), "linalg.inv", is_matrix=False, bases="int64"),
    ),
)
