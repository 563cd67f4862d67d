"""Attention."""

from __future__ import annotations

from typing import Any

from conformance.ops.family import Accumulation, Family, Own, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's device; the CPU has none to compare with"}
_QKV = (T((2, 3, 8)), T((2, 3, 8)), T((2, 3, 8)))
_PROJECTIONS = (8, 2, T((24, 8)), T((24,)), T((8, 8)), T((8,)))


def _attention(label: str, sizes: tuple[int, ...], heads: tuple[int, int] = (2, 2), **more: Any) -> Own:
    """Return a call on batches of 2; ``sizes``: queries, keys, elements of a key, and elements of a value."""
    queries, keys, size, *rest = sizes
    query, key = T((2, heads[0], queries, size)), T((2, heads[1], keys, size))
    value = T((2, heads[1], keys, *(rest or [size])))
    return own("scaled_dot_product_attention", label, query, key, value, **more)


def _mask(queries: int, keys: int, of: int, *heads: int) -> T:
    """Return a bool mask that gives each query one key, and about one in ``of`` of the others, or none for 0."""
    return T((*heads, queries, keys), f"keys/{keys}/{of}", "bool")


# Except for the first two, no number of queries or keys is a whole number of tiles. Each query has a key, since the
# result of a row without keys differs between torch versions.
_CONFIGURATIONS = (
    _attention("tiles", (64, 64, 64)),
    _attention("tiles_causal", (64, 64, 64), is_causal=True),
    _attention("tail_of_keys", (8, 38, 64)),
    _attention("tail_of_keys_masked", (8, 38, 64), attn_mask=_mask(8, 38, 3)),
    _attention("one_query", (1, 70, 96)),
    _attention("one_query_biased", (1, 70, 96), attn_mask=T((1, 70))),
    _attention("many_keys", (1, 513, 64), attn_mask=_mask(1, 513, 2, 2, 1)),
    _attention("past_tiles", (130, 257, 64)),
    _attention("past_tiles_causal", (130, 257, 64), is_causal=True),
    _attention("past_tiles_masked", (130, 257, 64), attn_mask=_mask(130, 257, 3)),
    _attention("one_key_of_a_query", (130, 257, 64), attn_mask=_mask(130, 257, 0)),
    _attention("past_tiles_biased", (130, 257, 64), attn_mask=T((2, 1, 130, 257))),
    _attention("wide", (257, 130, 128)),
    _attention("wide_causal", (257, 130, 128), is_causal=True),
    _attention("wide_barred", (257, 130, 128), attn_mask=T((257, 130), "barred/130/3")),
    _attention("other_values", (67, 131, 40, 72), is_causal=True, scale=0.25),
    _attention("grouped_heads", (67, 131, 64), (4, 2), enable_gqa=True),
    _attention("grouped_heads_causal", (131, 131, 32), (6, 2), is_causal=True, enable_gqa=True),
    _attention("grouped_heads_masked", (67, 131, 64), (4, 1), attn_mask=_mask(67, 131, 3, 2, 1), enable_gqa=True),
)

FAMILY = Family(
    "attention",
    words(
        "*scaled_dot_product_* scaled_dot_product_attention *_flash_attention_* _efficient_attention_* "
        "_cudnn_attention_* _fill_mem_eff_dropout_mask _fused_sdp_choice _native_multi_head_attention "
        "_transform_bias_rescale_qkv _transformer_encoder_layer_fwd _triton_*"
    ),
    {"tolerance": Tolerance(16.0, 4.0, Accumulation.REDUCED)},
    but={
        "_triton_*": _OTHER_DEVICE,
        "_scaled_dot_product_fused_attention_overrideable*": {
            "cannot": "a hook for out-of-tree backends: the CPU only raises"
        },
        "scaled_dot_product_attention": {"doubtful": ("expanded",), "picks_kernel": True},
        # Which of several fused kernels would run is a device's own choice.
        "_fused_sdp_choice": {"undefined": (0,)},
    },
    samples=(
        own("_fused_sdp_choice", "plain", T((1, 2, 4, 8)), T((1, 2, 4, 8)), T((1, 2, 4, 8))),
        own("_native_multi_head_attention", "self", *_QKV, *_PROJECTIONS, None, False, True),
        own("_transform_bias_rescale_qkv", "two_heads", T((2, 3, 24)), T((24,)), 2),
        own("_transformer_encoder_layer_fwd", "relu", T((2, 3, 8)), *_PROJECTIONS, False, False, 1e-5, T((8,)), T((8,)),
            T((8,)), T((8,)), T((16, 8)), T((16,)), T((8, 16)), T((8,))),
        own("_scaled_dot_product_attention_math", "causal", T((1, 2, 4, 8)), T((1, 2, 4, 8)), T((1, 2, 4, 8)), None,
            0.0, True),
    ),
    configurations=_CONFIGURATIONS,
)  # fmt: skip
