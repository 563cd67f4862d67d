"""The model of a sample: the arguments of one overload, with tensors as slots whose values are in the corpus.

A slot whose ``dtype`` is None has the cell's dtype. Other slots (an index, a mask) keep their own. No torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

#: The dtypes in which samples are recorded, one of each kind: ``Sample.base`` is one of them.
BASES = ("float32", "int64", "bool", "complex64")

#: A value that samples try for each argument that may be a number of any kind. It is odd, and rounds to an even
#: float32. CPU rounds an exponent to float32 for whole vectors of elements, but not for the remaining elements.
BEYOND_FLOAT = 2**24 + 1


@dataclass(frozen=True, slots=True)
class TensorSlot:
    """A tensor argument: its logical shape and the position of its values.

    ``name`` is the argument's schema name, with an index inside a list (``tensors[1]``), unique within the sample.
    ``pool`` and ``start`` give the position of ``numel`` contiguous elements in the corpus' value pool. The pool ""
    means that the values are undefined (an ``out=`` argument): both sides are filled with poison.
    ``fill`` says how values are generated from the ``source`` stored elements at ``start``, see
    :mod:`conformance.corpus.fills`; "" means that the stored elements are the values.
    ``same_as`` names an earlier slot that is the same tensor object (aliased arguments of a recorded call), else "".
    """

    index: int  # position in Sample.tensors
    name: str
    shape: tuple[int, ...]
    dtype: str | None  # torch's name without "torch.", e.g. "int64"; None follows the cell's dtype
    written: bool  # the schema marks it as mutated
    pool: str = ""
    start: int = 0
    same_as: str = ""
    on_host: bool = False  # on CPU on both sides, as in the recorded call
    fill: str = ""
    source: int = 0

    @property
    def argument(self) -> str:
        """The argument's schema name, without an index."""
        return self.name.partition("[")[0]

    @property
    def numel(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n


@dataclass(frozen=True, slots=True)
class DtypeArg:
    """A ``dtype=`` argument; name None follows the cell's dtype."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DeviceArg:
    """A ``device=`` argument: cpu on the reference side, the device under test on the other; or ``name`` on both."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class EnumArg:
    """A layout or memory format, e.g. kind "memory_format", name "channels_last"; kind "layout", name "strided"."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class GeneratorArg:
    """A generator argument: a new generator of the side's device with this seed."""

    seed: int


@dataclass(frozen=True, slots=True)
class ComplexArg:
    real: float
    imag: float


Arg = Union[  # noqa: UP007 - a type that holds itself by name cannot be written with "|" on Python 3.10
    None, bool, int, float, str, TensorSlot, DtypeArg, DeviceArg, EnumArg, GeneratorArg, ComplexArg, tuple["Arg", ...]
]


class NotStorable(Exception):
    """An argument that a sample cannot hold: a sparse, quantized or nested tensor, a symbol, or another object."""


@dataclass(frozen=True, slots=True)
class SampleName:
    """The parts of a sample's name, ``opinfo.addmm.cd4fe7a0``."""

    source: str  # how the sample was made: "opinfo", "derived" or "own"
    label: str  # what it was made from; may contain dots
    digest: str  # of its structure and values

    @staticmethod
    def parse(name: str) -> SampleName:
        """Return the parts of a name. Raises ValueError if the name has fewer than three parts."""
        source, rest = name.split(".", 1)
        label, digest = rest.rsplit(".", 1)
        return SampleName(source, label, digest)

    def __str__(self) -> str:
        return f"{self.source}.{self.label}.{self.digest}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One set of arguments of one overload.

    ``name`` is stable, unique within the overload, and names the origin (``opinfo.addmm.cd4fe7a0``,
    ``own.masking.line.361cebb7``, see :class:`SampleName`). It never depends on a position in a list.
    ``base`` is the recorded dtype (float32, int64, bool, complex64), which stands for its kind of dtypes; ``dtypes``
    are the cell dtypes in which CPU ran the sample when the corpus was built.
    ``raises`` is true if CPU raised an error when the corpus was built: the device must raise an error too.
    ``axis`` names what a generated sample varies: "sizes", "large", "values" or "variants"; "" if it is not generated.
    ``own_kernel`` is true for a sample that is only for backends with a kernel of their own for the overload. It is not
    tried where the overload is composite.
    """

    name: str
    overload: str
    base: str
    dtypes: tuple[str, ...]
    args: tuple[Arg, ...]
    kwargs: tuple[tuple[str, Arg], ...]
    tensors: tuple[TensorSlot, ...]
    raises: bool = False
    axis: str = ""
    own_kernel: bool = False
