"""Reading and writing at given positions: index tensors, slices of one dimension, nonzero."""

from __future__ import annotations

from conformance.ops.family import ADDED, EXACT, Accumulation, Family, T, Tolerance, own, words

ALL_BASES = "float32 int64 bool complex64"
_FROM_THE_END = T((4,), (-1, 0, -4, 2), "int64")
_BEYOND = T((3,), (0, 7, 1), "int64")
_TWICE = T((4,), (1, 1, 3, 1), "int64")

FAMILY = Family(
    "indexing",
    words(
        "argwhere index index_add index_copy index_fill index_put _index_put_impl index_reduce index_select "
        "index_select_backward nonzero nonzero_numpy nonzero_static put take take_along_dim _unsafe_index "
        "_unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate one_hot select_scatter "
        "slice_scatter diagonal_scatter as_strided_scatter fill_diagonal select_backward slice_backward "
        "diagonal_backward narrow_copy unfold_backward"
    ),
    {"tolerance": EXACT, "moves": True},
    but={
        **{
            name: {"tolerance": ADDED}
            for name in words("index_add index_reduce _unsafe_masked_index_put_accumulate index_select_backward")
        },
        **{
            name: {"tolerance": ADDED, "last_wins": True}
            for name in words("index_put _index_put_impl put _unsafe_index_put")
        },
        "unfold_backward": {"tolerance": Tolerance(1.0, accumulation=Accumulation.FEW)},
        "index_copy": {"last_wins": True},
    },
    samples=(
        own("_index_put_impl_", "accumulated", T((4, 3)), (T((5,), "index:4", "int64"),), T((5, 3)), True),
        own("_index_put_impl_", "unsafe", T((4, 3)), (T((2,), (3, 1), "int64"),), T((2, 3)), False, True),
        own("_unsafe_index.Tensor", "rows", T((4, 3)), (T((5,), "index:4", "int64"),), bases="float32 int64"),
        own("_unsafe_index_put", "rows", T((4, 3)), (T((2,), (3, 1), "int64"),), T((2, 3))),
        own("index.Tensor", "from_the_end", T((4, 3)), (_FROM_THE_END,), bases=ALL_BASES),
        own("index_put_", "from_the_end", T((4, 3)), (_FROM_THE_END,), T((4, 3)), bases=ALL_BASES),
        own("index_put_", "several_into_one", T((4,)), (_TWICE,), T((4,)), True, bases="float32 int64 complex64"),
        own("take", "from_the_end", T((4, 3)), _FROM_THE_END, bases=ALL_BASES),
        own("put_", "several_into_one", T((4,)), _TWICE, T((4,)), True, bases="float32 int64"),
        own("index_select", "beyond_the_end", T((4, 3)), 0, _BEYOND, raises=True),
        own("index.Tensor", "beyond_the_end", T((4, 3)), (_BEYOND,), raises=True),
        own("index_put_", "beyond_the_end", T((4, 3)), (_BEYOND,), T((3, 3)), raises=True),
        own("take", "beyond_the_end", T((2, 3)), _BEYOND, raises=True),
        own("slice_scatter", "two_of_five", T((5, 3, 2)), T((2, 3, 2)), 0, 1, 3, bases=ALL_BASES),
        own("slice_scatter", "every_other", T((3, 6)), T((3, 3)), 1, 0, 6, 2, bases=ALL_BASES),
        own("slice_scatter", "all", T((3, 4)), T((3, 4)), bases=ALL_BASES),
    ),
)  # fmt: skip
