"""Quantization: fake quantization on plain tensors. A sample cannot hold quantized tensors."""

from __future__ import annotations

from conformance.ops.family import ROUNDED, SUMMED, Family, T, own, words

_QUANTIZED = {"cannot": "takes or makes a quantized tensor"}
_SCALE, _ZERO = T((1,), (0.1,), "float32"), T((1,), (3,), "int32")
_SCALES, _ZEROS = T((3,), (0.1, 0.2, 0.05), "float32"), T((3,), (1, 0, 2), "int32")
_FLOAT_ZERO = T((1,), (3.0,), "float32")
_FLOAT_ZEROS = T((3,), (1.0, 0.0, 2.0), "float32")

FAMILY = Family(
    "quantized",
    words(
            "*fake_quantize_* _fused_moving_avg_obs_fq_helper* fused_moving_avg_obs_fake_quant "
            "_choose_qparams_per_tensor choose_qparams_optimized _convert_weight_to_int4pack* dequantize "
            "_dyn_quant_* _empty_affine_quantized _empty_per_channel_affine_quantized fbgemm_* int_repr "
            "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor q_per_channel_* q_scale "
            "q_zero_point qscheme quantize_per_* quantized_gru* quantized_lstm* quantized_rnn_* "
            "_saturate_weight_to_fp16 _weight_int4pack_* _weight_int8pack_mm _wrapped_* _mixed_dtypes_linear"
        ),
    {"tolerance": ROUNDED},
    but={
        **dict.fromkeys(words(
            "dequantize _empty_affine_quantized _empty_per_channel_affine_quantized int_repr "
            "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor q_per_channel_* q_scale "
            "q_zero_point qscheme quantize_per_* quantized_gru* quantized_lstm* quantized_rnn_*"
        ), _QUANTIZED),
        **{name: {"cannot": "packs weights for FBGEMM, a library of x86"} for name in ("fbgemm_*", "_wrapped_*")},
        **{
            name: {"tolerance": SUMMED}
            for name in words("*_backward _weight_int4pack_mm_for_cpu _dyn_quant_matmul_4bit")
        },
        # Its loads require alignment, which an argument may lack.
        "_weight_int8pack_mm": {"tolerance": SUMMED, "overruns": ("offset1", "offset_gap", "outer_gap", "overlapping")},
        "_dyn_quant_*": {"cannot": "packs weights for KleidiAI, a library of Arm"},
        # The packed form is the CPU's own.
        "_convert_weight_to_int4pack_for_cpu": {"undefined": (0,)},
    },
    samples=(
        own("fake_quantize_per_tensor_affine_cachemask", "bytes", T((3, 4)), 0.1, 3, 0, 255),
        own("fake_quantize_per_channel_affine_cachemask", "rows", T((3, 4)), _SCALES, _ZEROS, 0, 0, 255),
        own("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "bytes", T((3, 4)), _SCALE, _ZERO,
            T((1,), (1,), "int64"), 0, 255),
        own("_fake_quantize_learnable_per_tensor_affine", "bytes", T((3, 4)), _SCALE, _FLOAT_ZERO, 0,
            255, 1.0),
        own("_fake_quantize_learnable_per_tensor_affine_backward", "bytes", T((3, 4)), T((3, 4)), _SCALE,
            _FLOAT_ZERO, 0, 255, 1.0),
        own("_fake_quantize_learnable_per_channel_affine", "rows", T((3, 4)), _SCALES, _FLOAT_ZEROS, 0, 0, 255, 1.0),
        own("_fake_quantize_learnable_per_channel_affine_backward", "rows", T((3, 4)), T((3, 4)), _SCALES, _FLOAT_ZEROS,
            0, 0, 255, 1.0),
        own("_fused_moving_avg_obs_fq_helper", "tensor", T((3, 4)), T((1,), (1,), "int64"), T((1,), (1,), "int64"),
            T((1,), (-1.0,), "float32"), T((1,), (1.0,), "float32"), _SCALE, _ZERO, 0.01, 0, 255, 0),
        own("_weight_int8pack_mm", "rows", T((4, 32)), T((16, 32), "index:9", "int8"), T((16,), "positive")),
        own("_convert_weight_to_int4pack_for_cpu", "pairs", T((32, 64), "index:9", "int32"), 2, bases="int64"),
        own("_weight_int4pack_mm_for_cpu", "groups", T((4, 64)), T((32, 32), "index:9", "uint8"), 32,
            T((2, 32, 2), "positive")),
    ),
)  # fmt: skip
