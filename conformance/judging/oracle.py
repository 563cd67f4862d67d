"""The CPU reference of a case, and the float64 reference for distances."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from conformance import torch_versions
from conformance.ambient import Ambient, State
from conformance.corpus.model import DtypeArg
from conformance.judging import bits, conditioning
from conformance.judging.twins import CPU, Side, Sides
from conformance.judging.views import torch_dtype
from conformance.plan.case import Case, slot_dtype
from conformance.support import host_heap
from conformance.vocabulary import Route

# More than the arguments of any op, so that two arguments never share a draw.
_DRAWN_AT_MOST = 1_000

# The dtype in which the float64 reference holds the values of a dtype. Integers and bools stay as they are.
_WIDE = {
    "float16": "float64", "bfloat16": "float64", "float32": "float64", "float8_e4m3fn": "float64",
    "float8_e5m2": "float64", "float8_e4m3fnuz": "float64", "float8_e5m2fnuz": "float64", "float8_e8m0fnu": "float64",
    "complex32": "complex128", "complex64": "complex128",
}  # fmt: skip

_WIDEST = frozenset(_WIDE.values())


@dataclass(slots=True)
class CallOutcome:
    """The outcome of a call: its results as a flat list of (name, leaf) or its error, and the nanoseconds inside it."""

    side: Side
    leaves: list[tuple[str, Any]] = field(default_factory=list)
    error: BaseException | None = None
    raw_ns: int = 0
    returned: Any = None  # the results as they were returned
    ambient: tuple[State | None, State | None] = (None, None)  # before and after the call, if that was watched


def widened(dtype: str) -> str:
    """Return the dtype in which the float64 reference of a cell of ``dtype`` computes."""
    return _WIDE.get(dtype, dtype)


def call(
    op: Callable[..., Any], side: Side, seed: int | None = None, synchronize: Callable[[], None] | None = None,
    ambient: Ambient | None = None,
) -> CallOutcome:  # fmt: skip
    """Call ``op`` with a side's arguments. Only the call and the wait for the device are timed.

    For a call on CPU only CPU's generator is seeded: a program whose calls are judged may go on to draw on the
    device. ``ambient``: read before and after the call.
    """
    outcome = CallOutcome(side)
    if seed is not None:
        seed_generators(seed, side.device)
    before = ambient.now() if ambient else None
    start = time.perf_counter_ns()
    try:
        result = op(*side.args, **side.kwargs)
        if synchronize is not None:
            synchronize()
    except Exception as e:  # noqa: BLE001  # whatever an op under test raises is an observation
        drop_tracebacks(e)
        outcome.error = e
    else:
        outcome.returned = result
    outcome.raw_ns = time.perf_counter_ns() - start
    if ambient:
        outcome.ambient = before, ambient.now()
    if outcome.error is None:
        _flatten("result", outcome.returned, outcome.leaves)
    return outcome


def drop_tracebacks(error: BaseException) -> None:
    """Drop the tracebacks of an error, and of all errors that it has as cause or context.

    Their frames keep tensors alive, which would look like a leak of the op.
    """
    chain = [error]
    for one in chain:
        one.__traceback__ = None
        earlier = (one.__cause__, one.__context__)
        chain += [e for e in earlier if e is not None and not any(e is known for known in chain)]


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed CPU's default generator and, for another device, those of all devices of its type.

    ``torch.manual_seed`` does the same and takes 100 times as long. It is called only if torch has no
    ``manual_seed_all`` for the device's type.
    """
    if device == CPU:
        torch.default_generator.manual_seed(seed)
        return
    seed_all = getattr(getattr(torch, device.type, None), "manual_seed_all", None)
    if seed_all is None:
        torch.manual_seed(seed)
        return
    torch.default_generator.manual_seed(seed)
    seed_all(seed)


class Caller:
    """A caller of one op, which seeds its draws with ``seed``, and counts nanoseconds inside calls in ``raw_ns``."""

    def __init__(self, op: Callable[..., Any], seed: int | None) -> None:
        self.op = op
        self.seed = seed
        self.raw_ns = 0

    def __call__(
        self, side: Side, *, seed: int | None = None, synchronize: Callable[[], None] | None = None,
        ambient: Ambient | None = None,
    ) -> CallOutcome:  # fmt: skip
        """Call the op with a side's arguments. ``seed`` replaces its own, and seeds generators among these."""
        if seed is not None:
            for generator in side.generators:
                generator.manual_seed(seed)
        outcome = call(self.op, side, self.seed if seed is None else seed, synchronize, ambient)
        self.raw_ns += outcome.raw_ns
        return outcome


def _flatten(name: str, value: Any, into: list[tuple[str, Any]]) -> None:
    if isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            _flatten(f"{name}[{i}]", v, into)
    else:
        into.append((name, value))


def float64(case: Case, twins: Sides, op: Callable[..., Any]) -> CallOutcome | None:
    """Return the outcome in double precision on CPU, of the same numbers; None if this adds nothing or raises.

    This includes cases of integers that torch promotes to its default dtype. It is called only if the bits of the two
    sides differ, which is rare, so the third call is worth its time.
    """
    dtypes = set(_dtypes(case))
    if not dtypes & _WIDE.keys() and dtypes & _WIDEST:
        return None
    try:
        outcome = _called_wide(op, twins.side(case, CPU, widened))
    except (RuntimeError, LookupError, TypeError):
        return None  # the arguments themselves do not exist in the wide dtype
    if outcome.error or (_is_widest(case) and not any(_is_wide(leaf) for _, leaf in outcome.leaves)):
        return None
    return outcome


def _called_wide(op: Callable[..., Any], side: Side) -> CallOutcome:
    """Make the call with float64 as the default dtype, to which torch promotes integers."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return call(op, side)
    finally:
        torch.set_default_dtype(before)


def _is_wide(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.dtype in (torch.float64, torch.complex128)


def _dtypes(case: Case) -> Iterator[str]:
    """Yield the dtypes of a case: its cell's, and those that its sample fixes for tensors and in arguments."""
    sample = case.sample
    yield case.cell.dtype
    yield from (slot.dtype for slot in sample.tensors if slot.dtype)
    arguments = (*sample.args, *(arg for _, arg in sample.kwargs))
    yield from (arg.name for arg in arguments if isinstance(arg, DtypeArg) and arg.name)


def perturbed(
    case: Case, twins: Sides, op: Callable[..., Any], wide: bool, size: float, draw: int, most: float = math.inf
) -> CallOutcome | None:
    """Return the outcome on CPU with each floating argument moved by up to ``size`` x half a unit in the last place.

    An op that reads no floating tensor, such as ``linspace``, computes with its Scalars. In a cell of a floating
    dtype its integer Scalars are moved too.

    ``most`` limits half a unit, see :func:`half_unit_of_results`. ``wide``: compute in double precision, as
    :func:`float64`. None if CPU raises.
    """
    try:
        side = twins.side(case, CPU, widened if wide else str)
    except (RuntimeError, LookupError, TypeError):
        return None  # the arguments themselves do not exist in the wide dtype
    bases = {id(a.base): a for a in side.arguments if a.slot.pool and _can_be_moved(a.tensor.dtype)}
    draws = itertools.count(draw * _DRAWN_AT_MOST)
    for a in bases.values():
        half_unit = min(_half_unit(torch_dtype(slot_dtype(a.slot, case.cell.dtype))), most)
        conditioning.perturb(a.base.view(a.tensor.dtype), half_unit, size, next(draws))
    dtype = torch_dtype(case.cell.dtype)
    half_unit = min(_half_unit(dtype), most)
    whole = _scalars_of(op) if _can_be_moved(dtype) and not bases else set()
    side.args = tuple(_moved(arg, half_unit, size, draws, whole=i in whole) for i, arg in enumerate(side.args))
    side.kwargs = {k: _moved(arg, half_unit, size, draws, whole=k in whole) for k, arg in side.kwargs.items()}
    outcome = _called_wide(op, side) if wide else call(op, side)
    return None if outcome.error else outcome


def nearby(case: Case, twins: Sides, op: Callable[..., Any], draw: int) -> tuple[CallOutcome, CallOutcome] | None:
    """Return the outcomes on CPU with slightly moved floating tensors, in the case's dtype and in a wider one.

    Both calls get the same numbers. float64 has no wider dtype, so its numbers are rounded to float32 first. The
    distance of the two calls in units of float32 then stands for a distance in units of float64, see
    :func:`nearby_unit`. None if CPU raises, or if nothing can be moved.
    """
    narrower, wider = (_narrowed, str) if _is_widest(case) else (str, widened)
    try:
        narrow, wide = (twins.side(case, CPU, dtypes) for dtypes in (narrower, wider))
    except (RuntimeError, LookupError, TypeError):
        return None  # the arguments themselves do not exist in the other dtype
    pairs = {id(a.base): (a, b) for a, b in zip(narrow.arguments, wide.arguments, strict=True) if a.slot.pool}
    moved = [(a, b) for a, b in pairs.values() if _can_be_moved(a.tensor.dtype)]
    for i, (a, b) in enumerate(moved, start=draw * _DRAWN_AT_MOST):
        numbers = a.base.view(a.tensor.dtype)
        conditioning.perturb(numbers, 1.0, conditioning.nearby(_half_unit(a.tensor.dtype), draw), i)
        b.base.view(b.tensor.dtype).copy_(numbers)
    found = call(op, narrow), call(op, wide)
    return None if not moved or any(outcome.error for outcome in found) else found


def nearby_unit(case: Case) -> float:
    """Return the unit of the case's dtype, relative to that of the narrower dtype in :func:`nearby`."""
    return _half_unit(torch.float64) / _half_unit(torch.float32) if _is_widest(case) else 1.0


def _is_widest(case: Case) -> bool:
    """Return whether no dtype of a case has a wider dtype."""
    return not any(dtype in _WIDE for dtype in _dtypes(case))


def _narrowed(dtype: str) -> str:
    return {"float64": "float32", "complex128": "complex64"}.get(dtype, dtype)


def half_unit_of_results(outcome: CallOutcome) -> float:
    """Return half a unit in the last place of 1 in the coarsest floating dtype of the results, else in float64.

    An op whose results are finer than its arguments has to compute in the finer dtype, as a mean with ``dtype=``
    does.
    """
    written = (a.tensor for a in outcome.side.arguments if a.slot.written)
    tensors = [*(leaf for _, leaf in outcome.leaves if isinstance(leaf, torch.Tensor)), *written]
    floating = (t.dtype for t in tensors if t.dtype.is_floating_point or t.dtype.is_complex)
    return max(map(_half_unit, floating), default=_half_unit(torch.float64))


def without_nan(case: Case, twins: Sides, op: Callable[..., Any]) -> CallOutcome | None:
    """Return the outcome on CPU with zeros in place of the NaN of its real tensor arguments. None if CPU raises."""
    side = twins.side(case, CPU)
    for a in side.arguments:
        if a.slot.pool and _can_be_moved(a.tensor.dtype) and not a.tensor.is_complex():
            numbers = a.base.view(a.tensor.dtype)
            numbers.masked_fill_(numbers.isnan(), 0)
    outcome = call(op, side)
    return None if outcome.error else outcome


def of_magnitudes(case: Case, twins: Sides, op: Callable[..., Any]) -> CallOutcome | None:
    """Return the outcome in double precision with the magnitudes of the tensors' real numbers. None if CPU raises.

    The result of an op that adds up products is then the sum of the terms' magnitudes.
    """
    try:
        side = twins.side(case, CPU, widened)
    except (RuntimeError, LookupError, TypeError):
        return None  # the arguments themselves do not exist in the wide dtype
    for a in side.arguments:
        if a.slot.pool and a.tensor.dtype.is_floating_point and _can_be_moved(a.tensor.dtype):
            a.base.view(a.tensor.dtype).abs_()
    outcome = call(op, side)
    return None if outcome.error else outcome


def _half_unit(dtype: torch.dtype) -> float:
    """Return half a unit in the last place of 1 in ``dtype``; for an integer dtype, in the default dtype."""
    floating = dtype.is_floating_point or dtype.is_complex
    return float(torch.finfo(dtype if floating else torch.get_default_dtype()).eps) / 2


def _moved(arg: Any, half_unit: float, size: float, draws: Iterator[int], *, whole: bool = False) -> Any:
    """Return a non-tensor argument with its floating numbers moved, and with ``whole`` its integers, too."""
    if isinstance(arg, list):
        return [_moved(a, half_unit, size, draws, whole=whole) for a in arg]
    moves = isinstance(arg, (float, complex)) or (whole and isinstance(arg, int))
    return conditioning.perturbed(arg, half_unit, size, next(draws)) if moves else arg


def _scalars_of(op: Callable[..., Any]) -> set[int | str]:
    """Return the positions and names of the arguments that are Scalars by the op's schema; none without a schema."""
    schema = getattr(op, "_schema", None)
    scalars = [(i, a) for i, a in enumerate(schema.arguments) if isinstance(a.type, torch.NumberType)] if schema else []
    return {key for i, a in scalars for key in (i, a.name)}


def _can_be_moved(dtype: torch.dtype) -> bool:
    return bool(dtype.is_floating_point or dtype.is_complex) and dtype.itemsize > 1


def promoted(case: Case, twins: Sides, op: Callable[..., Any], dtype: str) -> CallOutcome | None:
    """Return the outcome on CPU with every argument in ``dtype`` from the start; None if this adds nothing or raises.

    On CPU, TensorIterator first copies arguments that are promoted to dense temporaries, and derives the strides of
    the result from these. On any other device it derives them from the arguments, and so does this call on CPU.
    """
    if all(slot_dtype(s, case.cell.dtype) == dtype for s in case.sample.tensors):
        return None
    try:
        outcome = call(op, twins.side(case, CPU, lambda _: dtype))
    except (RuntimeError, LookupError, TypeError):
        return None  # the arguments themselves do not exist in the dtype
    return None if outcome.error else outcome


def agrees_with_itself(
    first: CallOutcome, call_again: Callable[[], CallOutcome], rounds: int = 1, undefined: Collection[int] = ()
) -> bool:
    """Return whether CPU gives the same bits again when fresh memory holds other leftovers.

    The values of the ``undefined`` results, given by position, are not compared.

    Some CPU kernels do not check their arguments, and read uninitialized memory for shapes that a layout makes. Then
    there is no reference. Most cases are tested only after a difference was found, so a case without a difference
    costs nothing more. Each of the ``rounds`` makes three calls, each with other leftovers in fresh memory.
    """
    for byte in (0xBF, 0xFF, 0x3F) * rounds:  # malloc fills with the complement: 3.0 in a float32, zeros, -6.0
        host_heap.shake()
        with host_heap.leftovers(byte):
            again = call_again()
        if not _alike(first, again, undefined):
            return False
    return True


def reads_behind_its_arguments(call_with: Callable[[float], CallOutcome], undefined: Collection[int] = ()) -> bool:
    """Return whether CPU's results depend on the memory behind its arguments, without the values of ``undefined`` ones.

    ``call_with`` makes the call with a value in that memory. Normally that memory belongs to the heap and does not
    change from call to call, so that CPU agrees with itself. 0 and 1 are harmless if a kernel takes them for an
    index. A factor of zero does not hide NaN, and an argument that holds indices gets no NaN.
    """
    zeros, ones = call_with(0), call_with(1)
    if zeros.error is not None and ones.error is not None:  # it cannot be resized, and its results are not compared
        return str(zeros.error) != str(ones.error)
    return not _alike(zeros, ones, undefined) or not _alike(zeros, call_with(math.nan), undefined)


def _alike(a: CallOutcome, b: CallOutcome, undefined: Collection[int]) -> bool:
    if type(a.error) is not type(b.error) or len(a.leaves) != len(b.leaves):
        return False
    if str(a.error) != str(b.error):  # the message names a number from unwritten memory
        return False
    leaves = [(x, y) for (_, x), (_, y) in zip(a.leaves, b.leaves, strict=True)]
    arguments = [(x.tensor, y.tensor) for x, y in zip(a.side.arguments, b.side.arguments, strict=True)]
    same = all(_same_leaf(*pair, valued=i not in undefined) for i, pair in enumerate(leaves))
    return same and all(_same_leaf(*pair) for pair in arguments)


def _same_leaf(a: Any, b: Any, *, valued: bool = True) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.layout != torch.strided or b.layout != torch.strided:
            return bool(a.layout == b.layout)
        same = a.dtype == b.dtype and a.shape == b.shape
        return same and (not valued or bits.same_bits(a, b) or bool(bits.same_exactly(a, b).all()))
    return bool(a == b) or bool(a != a and b != b)


# CPU's message for a dtype without a kernel, and those of oneDNN, which some CPU kernels use, for strides that it
# does not support.
_UNSERVED = (
    "not implemented for",
    "could not construct a memory descriptor",
    "could not create a primitive descriptor",
)
# The dispatcher's message for an operator without a kernel for the device, and that of torch's placeholder for a
# kernel that each backend has to bring (`convolution_overrideable`).
_UNREGISTERED = ("Could not run", "please use TORCH_LIBRARY_IMPL to override this function")


def cannot_serve(error: BaseException | None) -> bool:
    """Return whether CPU raised because it has no kernel for these arguments, which says nothing about the device."""
    if isinstance(error, NotImplementedError):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _UNSERVED)


def lacks_kernel(error: BaseException | None, route: str, reference: BaseException | None = None) -> bool:
    """Return whether the device's error says that the device does not serve the overload.

    A native kernel that raises such an error with a message of its own is at fault. If the ``reference`` raised too,
    only torch's own messages count; other errors are a matter of error parity. A device that functionalizes calls
    does not serve what torch cannot functionalize.
    """
    if isinstance(error, RuntimeError) and torch_versions.cannot_functionalize(str(error)):
        return True
    if not isinstance(error, NotImplementedError):
        return False
    by_torch = any(text in str(error) for text in _UNREGISTERED)
    return by_torch or (route != Route.NATIVE and reference is None)
