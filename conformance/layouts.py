"""The catalogue of layouts: where each one puts a shape in a storage. Pure arithmetic, no torch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache
from random import Random

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """One tensor in its storage. All figures are in elements of the tensor's dtype.

    ``size`` differs from the sample's shape only for ``zero_size``, ``zero_dim`` and ``broadcast``. ``bit`` is "",
    "conj" or "neg": the view carries that bit, and the storage holds the conjugated or negated values.
    """

    layout: str
    size: Shape
    stride: Shape
    offset: int
    storage: int
    bit: str = ""

    @property
    def several_indices(self) -> bool:
        """Whether several indices refer to the same element of the storage."""
        repeated = any(n > 1 and s == 0 for n, s in zip(self.size, self.stride, strict=True))
        return self.layout == "overlapping" or (repeated and _numel(self.size) > 0)


# The layout of cells in which an argument has a single row or column, and the layout of that argument.
BROADCAST = "broadcast"

# The layout of some channels of a larger tensor, and the number of channels, rows or columns that are cut off.
CHANNEL_SLICE = "channel_slice"
_CUT = 3


def _numel(shape: Shape) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def contiguous_stride(shape: Shape) -> Shape:
    """Return row-major strides, with torch's rule that a size of 0 counts as 1."""
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))


def _extent(size: Shape, stride: Shape) -> int:
    """Return the number of elements from the first to the last element that the view reaches."""
    if _numel(size) == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))


def _contiguous(shape: Shape) -> Placement | None:
    return Placement("contiguous", shape, contiguous_stride(shape), 0, _numel(shape))


def _transposed(shape: Shape) -> Placement | None:
    if len(shape) < 2 or shape[-1] < 2 or shape[-2] < 2:
        return None
    stride = contiguous_stride((*shape[:-2], shape[-1], shape[-2]))
    return Placement("transposed", shape, (*stride[:-2], stride[-1], stride[-2]), 0, _numel(shape))


def _channels_last(shape: Shape) -> Placement | None:
    if len(shape) not in (4, 5) or shape[1] < 2 or _numel(shape[2:]) < 2:
        return None
    inner = contiguous_stride((shape[0], *shape[2:], shape[1]))
    return Placement("channels_last", shape, (inner[0], inner[-1], *inner[1:-1]), 0, _numel(shape))


def channels_last_inside(shape: Shape) -> Placement | None:
    """Return the placement of ``channels_last`` one pixel into a storage, with a tail behind the view."""
    dense = _channels_last(shape)
    return dense and replace(dense, offset=shape[1], storage=shape[1] + dense.storage + _CUT)


def channel_slice(shape: Shape) -> Placement | None:
    """Return the placement of the last channels of a dense tensor that has a few more channels. They are innermost."""
    whole = _channels_last((*shape[:1], shape[1] + _CUT, *shape[2:])) if _channels_last(shape) else None
    return whole and replace(whole, layout=CHANNEL_SLICE, size=shape, offset=_CUT)


def _step2(shape: Shape) -> Placement | None:
    if not shape or _numel(shape) < 2:
        return None
    stride = tuple(2 * s for s in contiguous_stride(shape))
    return Placement("step2", shape, stride, 0, 2 * _numel(shape))


def _outer_gap(shape: Shape) -> Placement | None:
    if len(shape) < 2 or _numel(shape) < 2 or shape[0] < 2:
        return None
    inner = _numel(shape[1:]) + 3
    return Placement("outer_gap", shape, (inner, *contiguous_stride(shape)[1:]), 0, shape[0] * inner)


def _offset1(shape: Shape) -> Placement | None:
    return Placement("offset1", shape, contiguous_stride(shape), 1, _numel(shape) + 2)


def _offset_gap(shape: Shape) -> Placement | None:
    """Return a placement with an offset, a gap in the outermost dimension, and a tail behind the view.

    A shape with one dimension has a step of 3 instead of the gap.
    """
    if not shape or _numel(shape) < 2:
        return None
    if len(shape) == 1:
        stride: Shape = (3,)
    else:
        stride = (_numel(shape[1:]) + 2, *contiguous_stride(shape)[1:])
    return Placement("offset_gap", shape, stride, 5, 5 + _extent(shape, stride) + 4)


def inner_part(shape: Shape) -> Placement | None:
    """Return the placement of rows and columns from the middle of larger matrices: an offset of a row and two columns.

    In contrast, the offset of ``offset_gap`` ends within the first row if that row is longer than a few elements.
    """
    if len(shape) < 2 or _numel(shape) < 2:
        return None
    whole = (*shape[:-2], shape[-2] + _CUT, shape[-1] + _CUT)
    stride = contiguous_stride(whole)
    return Placement("offset_gap", shape, stride, stride[-2] + 2, _numel(whole))


def _expanded(shape: Shape) -> Placement | None:
    dim = next((d for d, n in enumerate(shape) if n > 1), None)
    if dim is None:
        return None
    kept = (*shape[:dim], 1, *shape[dim + 1 :])
    stride = list(contiguous_stride(kept))
    stride[dim] = 0
    return Placement("expanded", shape, tuple(stride), 0, _numel(kept))


def _overlapping(shape: Shape) -> Placement | None:
    """Return a sliding window: dimension 0 has stride 1, so neighboring rows share all but one of their elements."""
    if len(shape) < 2 or shape[0] < 2 or _numel(shape[1:]) < 2:
        return None
    stride = (1, *contiguous_stride(shape)[1:])
    return Placement("overlapping", shape, stride, 0, _extent(shape, stride))


def _conj(shape: Shape) -> Placement | None:
    return Placement("conj", shape, contiguous_stride(shape), 0, _numel(shape), "conj")


def _neg(shape: Shape) -> Placement | None:
    return Placement("neg", shape, contiguous_stride(shape), 0, _numel(shape), "neg")


def _zero_size(shape: Shape) -> Placement | None:
    if not shape or shape[0] == 0:
        return None
    size = (0, *shape[1:])
    return Placement("zero_size", size, contiguous_stride(size), 0, 0)


def with_one(shape: Shape, dim: int) -> Placement:
    """Return the placement of a contiguous tensor of ``shape``, but with size 1 in dimension ``dim``."""
    dim %= len(shape)
    size = (*shape[:dim], 1, *shape[dim + 1 :])
    return Placement(BROADCAST, size, contiguous_stride(size), 0, _numel(size))


def _zero_dim(shape: Shape) -> Placement | None:
    if not shape or _numel(shape) == 0:
        return None
    return Placement("zero_dim", (), (), 0, 1)


PLACERS: dict[str, Callable[[Shape], Placement | None]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "channels_last": _channels_last,
    "step2": _step2,
    "outer_gap": _outer_gap,
    "offset1": _offset1,
    "offset_gap": _offset_gap,
    "expanded": _expanded,
    "overlapping": _overlapping,
    "conj": _conj,
    "neg": _neg,
    "zero_size": _zero_size,
    "zero_dim": _zero_dim,
}

# The layout of an argument whose storage holds another argument too, see plan/layout_cases.py. The argument's values
# fill the whole storage, repeatedly.
FILLED = "filled"

# Layouts of a whole argument list rather than of one tensor.
ALIASED = "aliased"
MIXED = "mixed"
AS_STRIDED = "as_strided"
_COMBINED = frozenset({"transposed", "channels_last", "step2", "outer_gap", "offset1", "offset_gap", "expanded"})
# Contiguous calls after other calls.
SEQUENCE = "sequence"

# Generated samples instead of the samples of the corpus: what they vary, and the layout that all their tensors have.
GENERATED: dict[str, tuple[str, str]] = {
    "sizes": ("sizes", "contiguous"),
    "sizes_gap": ("sizes", "offset_gap"),
    "sizes_strided": ("sizes", AS_STRIDED),
    "sizes_large": ("large", "contiguous"),
    "sizes_channels_last": ("sizes", CHANNEL_SLICE),
    "values": ("values", "contiguous"),
    "values_strided": ("values", AS_STRIDED),
    "variants": ("variants", "contiguous"),
    "variants_strided": ("variants", AS_STRIDED),
}

# Layouts whose cells have only the first dtype of a generated sample.
OF_FIRST_DTYPE = frozenset({"sizes_gap"})

# Layouts of cells that only overloads with a native kernel have. With a CPU kernel, these cells would show nothing.
OF_NATIVE = frozenset({SEQUENCE, "sizes_large"})

# Layouts whose cells have two dtypes: the first floating dtype of a generated sample, and HALF.
HALF = "bfloat16"
OF_TWO_DTYPES = frozenset({"sizes_channels_last"})

# Contexts: contiguous calls that are made in another way. conformance/contexts/ has a class for each.
CONTEXTS: dict[str, str] = {
    "second_device": "contiguous, on the second device while the first one is current",
    "thread": "contiguous, called in a new thread",
    "stream": "contiguous, on a stream of its own, where earlier work makes the arguments",
    "second_stream": "contiguous, on a stream of the second device's own, while the first one is current",
    "after_error": "contiguous, after an allocation that does not fit, or after a call of the overload that raises",
    "reused": "contiguous, after a call with the same tensors while they had other values",
    "inference_mode": "contiguous, under torch.inference_mode()",
    "autocast": "contiguous, under torch.autocast, for each dtype that it casts to",
    "deterministic": "contiguous and transposed, under torch.use_deterministic_algorithms(True); contiguous with "
    "warn_only=True",
    "default_dtype": "contiguous, while float64 is the default dtype",
    "backward": "contiguous: the gradients of the floating arguments, for gradients of the results in several layouts",
    "gradgrad": "contiguous: the gradients of the first gradients, by the arguments and the results' gradients",
    "overwritten": "contiguous: gradients after an argument or a result has been written",
    "gradcheck": "contiguous: the gradients on the device, against differences of the device's own results",
    "jacrev": "contiguous: a batch of gradients under torch.vmap, against gradients on CPU one after the other",
    "forward_ad": "contiguous: tangents of the results, for those of all floating arguments, the first, the last",
    "vmap": "contiguous, in a batch under torch.vmap, against calls on CPU one after the other",
    "functionalize": "contiguous, under torch.func.functionalize, against a plain call on CPU",
    "decomposed": "contiguous, as a graph of the ops that torch decomposes the op into",
    "fake": "contiguous: the sizes, strides, dtypes, devices and aliasing that fake tensors predict",
    "no_grad": "contiguous, with arguments that need gradients, under torch.no_grad() and in grad mode",
    "copied": "contiguous, with arguments that were copied by deepcopy or pickled",
    "compiled": "contiguous, compiled by torch.compile as a graph of one op, with backends that write no kernels",
    "inductor": "contiguous, and with an offset, compiled by Inductor as a graph of one op",
}

# Layouts whose cells have samples that were generated.
OF_GENERATED = frozenset({*GENERATED, SEQUENCE, AS_STRIDED})

LAYOUTS: dict[str, str] = {
    "contiguous": "row-major, the storage exactly as long as the tensor",
    "transposed": "the last two dimensions swapped in memory",
    "channels_last": "4-d and 5-d: channels innermost, dense; and with an offset and a tail",
    "step2": "every second element of the last dimension",
    "outer_gap": "unused elements between the rows of dimension 0",
    "offset1": "begins one element into the storage, hence misaligned",
    "offset_gap": "an offset, gaps, and a tail behind the view; and the middle of larger matrices",
    "expanded": "stride 0 in the first dimension longer than 1",
    "overlapping": "a sliding window whose rows share memory (inputs only)",
    "conj": "the conjugate bit set (complex dtypes)",
    "neg": "the negative bit set (floating and complex dtypes)",
    "zero_size": "dimension 0 emptied",
    "zero_dim": "one element, no dimension",
    BROADCAST: "contiguous, of pointwise ops: one argument has one column; two have one column and one row",
    ALIASED: "two arguments are one tensor, or views of a storage that overlap, have other strides, or are an element; "
    "two of which one is written lie in one storage, behind each other or in turns; of a pointwise op, an `out=` is an "
    "input",
    MIXED: "each argument in another layout",
    AS_STRIDED: "drawn: dimensions in any order, gaps, one expanded, any stride of size 1, any offset, conjugated",
    "sizes": "contiguous, of generated sizes at the edges of tiles and past 65,535 rows",
    "sizes_gap": "generated sizes in the first dtype, with an offset, gaps, and a tail behind the view",
    "sizes_strided": "generated sizes, with drawn strides and offsets; squares also with one argument transposed",
    "sizes_large": "contiguous, of native kernels: a size of 33,001 beside sizes of 17, and three million elements",
    "sizes_channels_last": "generated sizes, eight or more channels innermost: with an offset, and sliced from more",
    "values": "contiguous, with generated values: signed zeros, infinities, NaN, limits of the dtype",
    "values_strided": "generated values, with drawn strides and offsets",
    "variants": "contiguous, with generated arguments: flags, optionals, scalars of other types",
    "variants_strided": "generated arguments, with drawn strides and offsets",
    SEQUENCE: "contiguous, after calls of the overload that differ in one thing: layout, dtype, size, another argument",
    **CONTEXTS,
}

# Layouts with drawn strides.
DRAWN = frozenset({AS_STRIDED, *(name for name, (_, layout) in GENERATED.items() if layout == AS_STRIDED)})

# The layouts that the arguments of a `mixed` case get in rotation.
MIXABLE = ("transposed", "offset_gap", "step2", "expanded", "offset1", "outer_gap", "channels_last", "contiguous")

CONJ_DTYPES = frozenset({"complex32", "complex64", "complex128"})
NEG_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})


@cache
def place(layout: str, shape: Shape, written: bool = False) -> Placement | None:
    """Return the placement of a tensor of ``shape`` in ``layout``, None if the layout does not apply to the shape.

    A written argument is never an overlapping window, because the result of two writes to one element is not defined.
    It may be expanded: then CPU raises an error, and so must the device.
    """
    if written and layout == "overlapping":
        return None
    return PLACERS[layout](shape)


# The values that :func:`drawn` draws from. Some offsets keep the alignment to 16 and to 64 bytes, others break it.
_GAPS = (0, 0, 0, 1, 2, 5)
_STRIDES_OF_ONE = (0, 1, 2, 7, 100, 4096)
_OFFSETS = (0, 1, 2, 3, 4, 7, 8, 13, 16, 17)
_TAILS = (0, 1, 6)


def drawn(shape: Shape, draw: Random, written: bool = False) -> Placement | None:
    """Return a placement with strides and an offset from ``draw``, None for a shape without elements.

    An argument that is written has no expanded dimension.
    """
    if _numel(shape) == 0:
        return None
    order = draw.sample(range(len(shape)), len(shape))
    long = [d for d in order if shape[d] > 1]
    expanded = draw.choice(long) if len(long) > 1 and not written and draw.random() < 0.25 else None
    stride = [0] * len(shape)
    step = 1
    for d in order:
        if shape[d] == 1:
            stride[d] = draw.choice(_STRIDES_OF_ONE)
        elif d != expanded:
            stride[d] = step + draw.choice(_GAPS)
            step = stride[d] * shape[d]
    offset, tail = draw.choice(_OFFSETS), draw.choice(_TAILS)
    return Placement(AS_STRIDED, shape, tuple(stride), offset, offset + _extent(shape, tuple(stride)) + tail)


def is_among(layout: str, names: Collection[str]) -> bool:
    """Return whether ``names`` has the layout, or a layout that it combines with others."""
    return layout in names or (layout in DRAWN and not _COMBINED.isdisjoint(names))


def carries(layout: str, dtype: str) -> bool:
    """Return whether a tensor of ``dtype`` can have ``layout``. Only some dtypes can have the conj or the neg bit."""
    if layout == "conj":
        return dtype in CONJ_DTYPES
    if layout == "neg":
        return dtype in NEG_DTYPES
    return True
