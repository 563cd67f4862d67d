"""Sparse layouts: their makers, converters and arithmetic. Samples hold strided tensors only."""

from __future__ import annotations

from conformance.ops.family import EXACT, Family, T, own, words

_CROW, _COL = T((4,), (0, 2, 3, 5), "int64"), T((5,), (0, 2, 1, 0, 2), "int64")
_DENSE = words("_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _validate_*")

FAMILY = Family(
    "sparse",
    words(
            "_sparse_* sparse_* copy_sparse_to_sparse resize_as_sparse _validate_* _coalesce _coalesced coalesce "
            "ccol_indices* col_indices* crow_indices* row_indices* indices indices_copy _indices _indices_copy "
            "values values_copy _values _values_copy _nnz _dimI _dimV dense_dim sparse_dim is_coalesced hspmm smm "
            "sspaddmm _to_dense to_dense to_dense_backward to_sparse* _to_sparse* _spsolve "
            "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _cslt_* to_mkldnn "
            "to_mkldnn_backward _mkldnn_reshape _mkldnn_transpose mkldnn_reorder_* mkldnn_linear*"
        ),
    {"tolerance": EXACT, "cannot": "takes or makes a tensor of a layout that is not strided"},
    # These assume that an index tensor is dense.
    but={name: {"cannot": "", "overruns": ("expanded", "overlapping", "mixed")} for name in _DENSE},
    samples=(
        own("_convert_indices_from_coo_to_csr", "rows", T((5,), (0, 0, 1, 2, 2), "int64"), 3, bases="int64"),
        own("_convert_indices_from_coo_to_csr", "int32", T((5,), (0, 0, 1, 2, 2), "int64"), 3, out_int32=True,
            bases="int64"),
        own("_convert_indices_from_coo_to_csr.out", "rows", T((5,), (0, 0, 1, 2, 2), "int64"), 3,
            out=T((4,), "undefined", "int64"), bases="int64"),
        own("_convert_indices_from_csr_to_coo", "rows", _CROW, _COL, bases="int64"),
        own("_convert_indices_from_csr_to_coo", "transposed", _CROW, _COL, transpose=True, bases="int64"),
        own("_convert_indices_from_csr_to_coo.out", "rows", _CROW, _COL, out=T((2, 5), "undefined", "int64"),
            bases="int64"),
        own("_validate_compressed_sparse_indices", "rows", True, _CROW, _COL, 3, 3, 5, bases="int64"),
    ),
)  # fmt: skip
