"""Convolutions of one to three dimensions, and what unfolds and folds their windows."""

from __future__ import annotations

from conformance.ops.family import EXACT, Accumulation, Family, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"}
_I2, _W2, _B = T((2, 3, 6, 5)), T((4, 3, 3, 2)), T((4,))
_I3, _W3 = T((2, 3, 5, 6, 4)), T((4, 3, 2, 3, 2))

FAMILY = Family(
    "convolution",
    words(
        "col2im conv1d conv2d conv3d conv_depthwise3d _conv_depthwise2d conv_tbc conv_tbc_backward conv_transpose1d "
        "conv_transpose2d conv_transpose3d _convolution convolution convolution_backward "
        "convolution_backward_overrideable _convolution_double_backward _convolution_mode convolution_overrideable "
        "cudnn_convolution* im2col miopen_convolution* miopen_depthwise_convolution mkldnn_convolution "
        "_mps_convolution* mps_convolution* _nnpack_spatial_convolution slow_conv* _slow_conv2d_* thnn_conv2d"
    ),
    {"tolerance": Tolerance(4.0, accumulation=Accumulation.WINDOW, normwise=True)},
    but={
        "im2col": {"tolerance": EXACT},
        "mkldnn_convolution": {"doubtful": ("expanded",), "cpu_alone": True},
        "cudnn_*": _OTHER_DEVICE,
        "miopen_*": _OTHER_DEVICE,
        "mps_*": _OTHER_DEVICE,
        "_mps_*": _OTHER_DEVICE,
        "convolution*_overrideable": {"cannot": "a hook for out-of-tree backends: the CPU only raises"},
    },
    samples=(
        own("_slow_conv2d_forward", "padded", _I2, _W2, (3, 2), _B, (1, 1), (1, 0)),
        own("_slow_conv2d_forward", "strided", _I2, _W2, (3, 2), None, (2, 2), (0, 0)),
        own("_slow_conv2d_forward.output", "padded", _I2, _W2, (3, 2), _B, (1, 1), (1, 0),
            output=T((2, 4, 6, 4), "undefined")),
        own("_slow_conv2d_backward.output_mask", "all", T((2, 4, 6, 4)), _I2, _W2, (3, 2), (1, 1), (1, 0),
            (True, True, True)),
        own("_slow_conv2d_backward.grad_input", "all", T((2, 4, 6, 4)), _I2, _W2, (3, 2), (1, 1), (1, 0),
            grad_input=T((2, 3, 6, 5), "undefined"), grad_weight=T((4, 3, 3, 2), "undefined"),
            grad_bias=T((4,), "undefined")),
        own("slow_conv3d_forward", "padded", _I3, _W3, (2, 3, 2), _B, (1, 1, 1), (0, 1, 0)),
        own("slow_conv3d_forward.output", "padded", _I3, _W3, (2, 3, 2), _B, (1, 1, 1), (0, 1, 0),
            output=T((2, 4, 4, 6, 3), "undefined")),
        own("slow_conv_dilated2d", "dilated", _I2, _W2, (3, 2), _B, (1, 1), (1, 0), (2, 2)),
        own("slow_conv_dilated3d", "dilated", _I3, _W3, (2, 3, 2), _B, (1, 1, 1), (0, 1, 0), (2, 1, 2)),
        own("slow_conv_transpose2d", "strided", T((2, 4, 3, 3)), T((4, 3, 3, 2)), (3, 2), T((3,)), (2, 1), (1, 0)),
        own("slow_conv_transpose2d.out", "strided", T((2, 4, 3, 3)), T((4, 3, 3, 2)), (3, 2), T((3,)), (2, 1), (1, 0),
            out=T((2, 3, 5, 4), "undefined")),
        own("slow_conv_transpose3d", "strided", T((2, 4, 2, 3, 3)), T((4, 3, 2, 3, 2)), (2, 3, 2), T((3,)), (1, 2, 1)),
        own("slow_conv_transpose3d.out", "strided", T((2, 4, 2, 3, 3)), T((4, 3, 2, 3, 2)), (2, 3, 2), T((3,)),
            (1, 2, 1), out=T((2, 3, 3, 7, 4), "undefined")),
        own("mkldnn_convolution", "padded", _I2, _W2, _B, (1, 0), (1, 1), (1, 1), 1),
        own("conv_tbc", "padded", T((5, 2, 3)), T((3, 3, 4)), T((4,)), 1),
    ),
)  # fmt: skip
