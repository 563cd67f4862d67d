"""The kinds of PyTorch's device-type tests, by the names of the tests, and their counterparts in the suite. No torch.

From torch 2.8 to 2.13, classes of tests were renamed (``TestBinaryUfuncs``), but tests were not. So a kind is a set of
names of tests in any class.
"""

from __future__ import annotations

# Kind -> the names of its tests, in any class. The kind "plain" stands for every test.
PLAIN = "plain"
TESTS_OF_KIND: dict[str, tuple[str, ...]] = {
    PLAIN: (),
    "noncontiguous": (
        "test_noncontiguous_samples", "test_contig_vs_every_other", "test_contig_vs_transposed", "test_non_contig",
        "test_non_contig_expand", "test_batch_vs_slicing",
    ),
    "out": ("test_out", "test_out_warning", "test_out_arg_all_dtypes"),
    "inplace": (
        "test_variant_consistency_eager", "test_variant_consistency", "test_inplace_grad", "test_inplace_gradgrad",
        "test_inplace_forward_mode_AD",
    ),
    "conj": ("test_conj_view", "test_neg_conj_view"),
    "neg": ("test_neg_view", "test_neg_conj_view"),
    "errors": ("test_errors",),
    "values": (
        "test_reference_numerics_extremal", "test_reference_numerics_extremal_values", "test_reference_numerics_large",
        "test_reference_numerics_large_values", "test_reference_numerics_hard", "test_ref_extremal_values",
    ),
    "backward": (
        "test_fn_grad", "test_fn_gradgrad", "test_method_grad", "test_inplace_grad", "test_inplace_gradgrad",
        "test_backward", "test_vjp", "test_vjpvjp", "test_noncontiguous_samples", "test_variant_consistency_eager",
    ),
    "forward_ad": (
        "test_forward_mode_AD", "test_inplace_forward_mode_AD", "test_fn_fwgrad_bwgrad", "test_forward_ad", "test_jvp",
        "test_jvpvjp",
    ),
    "vmap": ("test_vmap_exhaustive", "test_op_has_batch_rule"),
    "fake": (
        "test_fake", "test_fake_autocast", "test_fake_crossref_backward_amp", "test_fake_crossref_backward_no_amp",
    ),
    "functionalize": ("test_aot_autograd_exhaustive", "test_aot_autograd_symbolic_exhaustive"),
    "decomposed": ("test_comprehensive", "test_quick"),
    "compiled": ("test_comprehensive",),
}  # fmt: skip

# The checks whose findings these tests also see. The tests compare values, dtypes, sizes and errors, but no memory.
SEEN_CHECKS = frozenset({"value", "dtype", "shape", "device", "error_parity"})

# Layout or context -> kind. PyTorch's tests do not try the layouts and contexts that are missing here.
KIND_OF_LAYOUT: dict[str, str] = {
    **dict.fromkeys(("contiguous", "zero_size", "zero_dim", "broadcast", "variants"), PLAIN),
    **dict.fromkeys(
        ("transposed", "channels_last", "step2", "outer_gap", "offset1", "offset_gap", "expanded", "overlapping",
         "mixed", "as_strided"), "noncontiguous",
    ),
    **{name: name for name in ("conj", "neg", "values", "backward", "forward_ad", "vmap", "fake", "functionalize")},
    "decomposed": "decomposed",
    **dict.fromkeys(("gradgrad", "gradcheck", "jacrev", "overwritten"), "backward"),
    **dict.fromkeys(("compiled", "inductor"), "compiled"),
}  # fmt: skip

# Kinds that do not follow from a layout, and the calls that they follow from.
FORMS = {
    "out": "overloads that write their results into arguments",
    "inplace": "in-place overloads",
    "errors": "calls that CPU refuses",
}
