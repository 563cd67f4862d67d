"""Attention."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Family, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's device; the CPU has none to compare with"}
_QKV = (T((2, 3, 8)), T((2, 3, 8)), T((2, 3, 8)))
_PROJECTIONS = (8, 2, T((24, 8)), T((24,)), T((8, 8)), T((8,)))

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
)  # fmt: skip
