"""Convolutions of one to three dimensions, and the ops that unfold and fold their windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.ops.family import EXACT, Accumulation, Family, Own, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"}
_I2, _W2, _B = T((2, 3, 6, 5)), T((4, 3, 3, 2)), T((4,))
_I3, _W3 = T((2, 3, 5, 6, 4)), T((4, 3, 2, 3, 2))


@dataclass(frozen=True, slots=True)
class _Window:
    """A configuration of a convolution: its sizes, and how its window moves over them."""

    label: str
    channels: tuple[int, int]
    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    groups: int = 1
    batch: int = 2
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    bias: bool = True
    more: tuple[int, ...] | None = None  # the output padding of a transposed convolution

    def samples(self) -> Iterator[Own]:
        """Yield a forward and a backward call."""
        ones, zeros = (1,) * len(self.sizes), (0,) * len(self.sizes)
        stride, padding, dilation = self.stride or ones, self.padding or zeros, self.dilation or ones
        into, out = self.channels
        first, second = (into, out) if self.more is not None else (out, into)
        x, weight = T((self.batch, into, *self.sizes)), T((first, second // self.groups, *self.kernel))
        how = (stride, padding, dilation, self.more is not None, self.more or zeros, self.groups)
        yield own("convolution", self.label, x, weight, T((out,)) if self.bias else None, *how)
        moved = zip(self.sizes, self.kernel, stride, padding, dilation, self.more or zeros, strict=True)
        gradient = T((self.batch, out, *(self._moved(*of) for of in moved)))
        sizes = (out,) if self.bias else None
        yield own("convolution_backward", self.label, gradient, x, weight, sizes, *how, (True, True, self.bias))

    def _moved(self, n: int, kernel: int, stride: int, padding: int, dilation: int, more: int) -> int:
        """Return the size of the result in a dimension."""
        window = dilation * (kernel - 1) + 1
        if self.more is not None:
            return (n - 1) * stride - 2 * padding + window + more
        return (n + 2 * padding - window) // stride + 1


# Windows of one to three dimensions: plain, in groups, in groups of one channel (depthwise), and with several results
# for a channel (a multiplier). Batches have several images, or more than a tile: a kernel may process only the first
# ones.
_WINDOWS = (
    _Window("plain_1d", (3, 4), (17,), (3,), padding=(1,)),
    _Window("long_1d", (5, 3), (1037,), (5,), batch=3, stride=(2,), padding=(2,)),
    _Window("grouped_1d", (6, 4), (17,), (4,), 2, batch=3, stride=(2,), bias=False),
    _Window("depthwise_1d", (5, 5), (19,), (3,), 5, padding=(2,), dilation=(2,)),
    _Window("multiplier_1d", (3, 6), (13,), (3,), 3, batch=3),
    _Window("one_by_one_1d", (5, 7), (11,), (1,), stride=(3,)),
    _Window("transposed_groups_1d", (4, 6), (9,), (3,), 2, stride=(2,), padding=(1,), more=(1,)),
    _Window("strided_2d", (3, 5), (9, 12), (3, 2), batch=3, stride=(2, 3), padding=(1, 0)),
    _Window("dilated_2d", (3, 4), (11, 9), (2, 3), padding=(0, 2), dilation=(3, 2), bias=False),
    _Window("one_by_one_2d", (5, 7), (6, 9), (1, 1), batch=3),
    _Window("one_by_one_strided_2d", (5, 3), (7, 9), (1, 1), stride=(2, 3), padding=(1, 0)),
    _Window("whole_2d", (3, 4), (5, 7), (5, 7), batch=3),
    _Window("grouped_2d", (6, 9), (8, 7), (3, 2), 3, padding=(1, 0)),
    _Window("grouped_strided_2d", (4, 6), (9, 11), (3, 3), 2, batch=3, stride=(1, 2), dilation=(2, 1), bias=False),
    _Window("depthwise_2d", (5, 5), (9, 8), (3, 3), 5, batch=3, padding=(1, 1)),
    _Window("depthwise_strided_2d", (4, 4), (10, 13), (2, 3), 4, stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
    _Window("multiplier_2d", (3, 6), (7, 9), (3, 2), 3, stride=(1, 2), padding=(0, 1), bias=False),
    _Window("tiles_2d", (36, 70), (11, 13), (3, 3), padding=(1, 1)),
    _Window("tiles_depthwise_2d", (67, 67), (19, 17), (3, 3), 67, batch=3, padding=(1, 1)),
    _Window("transposed_depthwise_2d", (4, 4), (5, 6), (3, 2), 4, batch=3, stride=(2, 3), padding=(1, 0), more=(1, 2)),
    _Window("strided_3d", (3, 4), (5, 7, 6), (2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1)),
    _Window("one_by_one_3d", (5, 4), (3, 5, 4), (1, 1, 1), batch=3, bias=False),
    _Window("whole_3d", (3, 2), (3, 4, 5), (3, 4, 5), batch=3),
    _Window("grouped_3d", (6, 4), (6, 5, 7), (2, 2, 3), 2, padding=(0, 1, 0), dilation=(2, 1, 1)),
    _Window("depthwise_3d", (5, 5), (5, 6, 4), (3, 3, 3), 5, batch=3, padding=(1, 1, 1)),
    _Window("multiplier_3d", (3, 6), (5, 4, 6), (2, 3, 1), 3, stride=(2, 1, 2)),
    _Window("transposed_groups_3d", (4, 6), (3, 4, 3), (2, 3, 2), 2, stride=(1, 2, 1), more=(0, 1, 0)),
    _Window("many_grouped_1d", (6, 4), (11,), (3,), 2, batch=67, padding=(1,)),
    _Window("many_transposed_1d", (3, 5), (6,), (3,), batch=131, stride=(2,), more=(1,)),
    _Window("many_strided_2d", (3, 5), (7, 6), (3, 2), batch=67, stride=(2, 1), padding=(1, 0)),
    _Window("many_depthwise_2d", (5, 5), (6, 5), (3, 2), 5, batch=131, padding=(1, 0)),
    _Window("many_transposed_2d", (4, 6), (4, 5), (3, 2), 2, batch=67, stride=(2, 1), more=(1, 0)),
    _Window("many_3d", (3, 5), (4, 3, 5), (2, 2, 3), batch=35, padding=(0, 1, 0)),
    _Window("many_grouped_3d", (4, 6), (3, 4, 3), (2, 1, 2), 2, batch=67, bias=False),
)

FAMILY = Family(
    "convolution",
    words(
        "col2im conv1d conv2d conv3d conv_depthwise3d _conv_depthwise2d conv_tbc conv_tbc_backward conv_transpose1d "
        "conv_transpose2d conv_transpose3d _convolution convolution convolution_backward "
        "convolution_backward_overrideable _convolution_double_backward _convolution_mode convolution_overrideable "
        "cudnn_convolution* im2col miopen_convolution* miopen_depthwise_convolution mkldnn_convolution "
        "_mps_convolution* mps_convolution* _nnpack_spatial_convolution slow_conv* _slow_conv2d_* thnn_conv2d"
    ),
    {"tolerance": Tolerance(4.0, accumulation=Accumulation.WINDOW, normwise=True, first_dim=1)},
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
    configurations=tuple(sample for window in _WINDOWS for sample in window.samples()),
)  # fmt: skip
