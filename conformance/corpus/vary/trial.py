"""Trials of generated samples on CPU. A child process can make the calls, since a call may kill its process."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from conformance.corpus.calls import HasValues, argument, tensors_of
from conformance.corpus.codec import decode, encode
from conformance.corpus.drafts import SEED
from conformance.corpus.model import Sample
from conformance.corpus.places import with_tensors
from conformance.corpus.validate import readable
from conformance.corpus.vary.answering import Answering
from conformance.corpus.vary.elementwise import Call, are_copies, is_elementwise
from conformance.corpus.vary.exactness import is_far
from conformance.corpus.vary.surroundings import ROUNDING, Surrounded, alike, with_gaps
from conformance.inventory import call_of
from conformance.ops import facts
from conformance.support import guarded_heap, host_heap
from conformance.torch_versions import without_onednn

# The most elements of a generated sample in its arguments, and in its results.
MOST_ELEMENTS = 400_000
_LARGE = 20_000  # elements of arguments whose product may take minutes
# CPU seconds that a call may take. A run makes the call several times.
MOST_SECONDS = 0.03
_HANGS = 60  # seconds after which a trial is killed, also on a busy machine
# CPU seconds after which a trial is killed. In a guarded heap, a call that allocates thousands of small blocks, as
# oneDNN's do when they generate code, takes hundreds of times as long as elsewhere.
_BUSY = 2.0
_LEFTOVERS = 0xBF  # in a second call, its complement fills fresh memory: 3.0 in a float32
_IN_GAPS = (1, 0)  # values between the elements of an argument, in two calls
_TIMES = 3  # calls of a trial on its own

# Texts of CPU's errors for a dtype that it has no loop for, and for a dtype that it meets when it reads the tensor.
# Another device may accept these dtypes.
_NOT_WRITTEN = ("not implemented for", "expected scalar type")


@dataclass(frozen=True, slots=True)
class Ran:
    """A call that returned, with the dtypes and the shapes of its results."""

    sample: Sample  # outputs have the sizes that the call gave them
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]


class Trials:
    """Trials of samples in this process; with ``isolated``, in a child, which is replaced after each death.

    Without ``timed``, a call may take any time, so that the same samples are found on every machine, however busy it
    is. ``elements`` and ``seconds`` limit a call; 0 stands for :data:`MOST_ELEMENTS` and :data:`MOST_SECONDS`.
    """

    def __init__(
        self, values: HasValues, *, isolated: bool = False, timed: bool = True, elements: int = 0, seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._values = values
        self.isolated = isolated
        self._timed = timed
        self._elements = elements or MOST_ELEMENTS
        self._seconds = seconds or MOST_SECONDS
        self._child: Answering | None = None
        self._answers: dict[str, Any] = {}  # by question: each axis begins with the same questions

    def untimed(self) -> Trials:
        """Return trials in which a call may take any time."""
        return Trials(self._values, isolated=self.isolated, timed=False, elements=self._elements)

    def within(self, elements: int, seconds: float) -> Trials:
        """Return trials with other limits of elements and of CPU seconds for a call."""
        return Trials(self._values, isolated=self.isolated, timed=self._timed, elements=elements, seconds=seconds)

    def run(self, sample: Sample, dtype: str) -> Ran | None:
        """Return the record of a call; None if CPU refuses it, or it is too large, too slow, unsound or deadly."""
        outcome = self._run(sample, dtype)
        return outcome if isinstance(outcome, Ran) else None

    def raises(self, sample: Sample, dtype: str) -> bool:
        """Return whether CPU refuses the call with an error."""
        return isinstance(self._run(sample, dtype), Exception)

    def refuses(self, sample: Sample, dtype: str) -> bool:
        """Return whether CPU refuses the call with an error other than a missing kernel."""
        outcome = self._run(sample, dtype)
        return isinstance(outcome, Exception) and not any(text in str(outcome) for text in _NOT_WRITTEN)

    def raises_without_memory(self, sample: Sample, dtype: str) -> bool:
        """Return whether torch refuses the call on ``meta`` tensors with an error other than a missing kernel."""
        try:
            tensors = [t.to("meta") for t in tensors_of(sample, dtype, self._values)]
            _made(sample, dtype, tensors)
        except NotImplementedError:
            return False
        except Exception:  # noqa: BLE001 - the error is the answer
            return True
        return False

    def reads_gaps(self, sample: Sample, dtype: str) -> bool:
        """Return whether results depend on the gaps of strided arguments, or the call on these is deadly.

        A dense argument hides an index that is too large for its dimension, and a size that CPU does not compare with
        the size of another argument: the call then reads another element of the argument.
        """
        return self._found("gaps", sample, dtype) is not False

    def is_inexact(self, sample: Sample, dtype: str) -> bool:
        """Return whether many elements of CPU's results are far from those that it computes in float64."""
        return self._found("inexact", sample, dtype) is not False

    def broadcasts(self, sample: Sample, dtype: str, slot: int, shape: tuple[int, ...]) -> bool:
        """Return whether CPU's results are those of the call with the tensor of a slot expanded to a shape."""
        return self._found("broadcasts", sample, dtype, slot, shape) is True

    def is_elementwise(self, sample: Sample, dtype: str) -> bool | None:
        """Return whether CPU computes each element of results from the same elements of arguments; None if unknown."""
        found: bool | None = self._found("elementwise", sample, dtype)
        return found

    def copies(self, sample: Sample, dtype: str) -> bool:
        """Return whether each result equals an argument, or the call is deadly."""
        return self._found("copies", sample, dtype) is not False

    def _run(self, sample: Sample, dtype: str) -> Ran | Exception | None:
        elements = sum(s.numel for s in sample.tensors if s.pool)
        if elements > self._elements or (elements > _LARGE and _has_larger_results(sample, dtype, self._elements)):
            return None  # results of smaller calls are counted after the call
        if self.isolated:
            return self._alone(sample, dtype)
        key = repr(_question("run", sample, dtype))
        if key not in self._answers:
            self._answers[key] = _packed(self._call(sample, dtype))
        return _unpacked(self._answers[key], sample)

    def _alone(self, sample: Sample, dtype: str) -> Ran | Exception | None:
        """Return the outcome of the call, which a child makes several times; None if a new child dies of it."""
        return _unpacked(self._asked("run", sample, dtype), sample)

    def _found(self, what: str, sample: Sample, dtype: str, *more: Any) -> Any:
        """Return the answer to a question; with ``isolated``, the child's answer."""
        return (self._asked if self.isolated else self._answer_of)(what, sample, dtype, *more)

    def _answer_of(self, what: str, sample: Sample, dtype: str, *more: Any) -> Any:
        ask: dict[str, Callable[..., Any]] = {
            "gaps": self._reads_gaps, "inexact": self._is_inexact, "broadcasts": self._broadcasts,
            "elementwise": self._is_elementwise, "copies": self._copies,
        }  # fmt: skip
        return ask[what](sample, dtype, *more)

    def _asked(self, what: str, sample: Sample, dtype: str, *more: Any) -> Any:
        """Return the child's answer, None if a new child dies of the question.

        Answers are kept, since a new child for each deadly question takes long.
        """
        question = [*_question(what, sample, dtype), *more]
        key = repr(question)
        if key not in self._answers:
            self._answers[key] = self._answered(question)
        return self._answers[key]

    def _answered(self, question: list[Any]) -> Any:
        if self._child is not None:  # an earlier call may have damaged its heap
            with contextlib.suppress(EOFError):
                return self._child.ask(question)
        self._child = Answering(self._answer)
        with contextlib.suppress(EOFError):
            return self._child.ask(question)
        self._child = None
        return None

    def _answer(self, question: Any) -> Any:
        what, overload, row, dtype, *more = question
        sample = decode(overload, row, [(dtype,)])
        signal.alarm(_HANGS)  # a call on a damaged heap may wait for ever
        if what != "run":
            found = self._answer_of(what, sample, dtype, *more)
            signal.alarm(0)
            return found
        outcome = self._call(sample, dtype)
        for _ in range(1, _TIMES) if outcome is not None else ():
            self._call(sample, dtype)
        with contextlib.suppress(MemoryError):
            host_heap.shake()
        signal.alarm(0)
        return _packed(outcome)

    def _call(self, sample: Sample, dtype: str) -> Ran | Exception | None:
        try:
            with guarded_heap.watched(0):
                tensors = tensors_of(sample, dtype, self._values)
        except Exception:  # noqa: BLE001 - values that a slot or this dtype cannot hold
            return None
        if self.isolated or not self._timed:
            return self._watched(sample, dtype, tensors)
        signal.alarm(_HANGS)
        try:
            return self._watched(sample, dtype, tensors)
        finally:
            signal.alarm(0)

    def _watched(self, sample: Sample, dtype: str, tensors: list[torch.Tensor]) -> Ran | Exception | None:
        """Return the outcome of the call, which must be the same over other leftovers in memory."""
        try:
            result, seconds = self._clocked(sample, dtype, tensors)
        except Exception as e:  # noqa: BLE001 - the error is the answer
            return e
        leaves = _leaves(result)
        if not readable(result) or sum(t.numel() for t in leaves) > self._elements:
            return None
        if self._timed and seconds > self._seconds and not self._is_fast(sample, dtype):
            return None
        if not self._is_sound(sample, dtype, leaves):
            return None
        pairs = zip(sample.tensors, tensors, strict=True)
        slots = [s if s.pool else replace(s, shape=tuple(t.shape)) for s, t in pairs]
        dtypes = tuple(str(t.dtype).removeprefix("torch.") for t in leaves)
        return Ran(with_tensors(sample, slots), dtypes, tuple(tuple(t.shape) for t in leaves))

    def _clocked(self, sample: Sample, dtype: str, tensors: list[torch.Tensor]) -> tuple[Any, float]:
        """Return the results of the call in the guarded heap, and its CPU seconds."""
        with guarded_heap.watched(0):
            return self._timed_call(sample, dtype, tensors)

    def _timed_call(self, sample: Sample, dtype: str, tensors: list[torch.Tensor]) -> tuple[Any, float]:
        signal.setitimer(signal.ITIMER_PROF, _BUSY if self._timed else 0)
        began = time.process_time()
        try:
            result = _made(sample, dtype, tensors)
            return result, time.process_time() - began
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _is_fast(self, sample: Sample, dtype: str) -> bool:
        """Return whether one of a few more calls is fast enough outside the guarded heap.

        The first call, a call in that heap, and a call on a busy machine take more CPU seconds.
        """
        again = (tensors_of(sample, dtype, self._values) for _ in range(_TIMES))
        return any(self._timed_call(sample, dtype, tensors)[1] <= self._seconds for tensors in again)

    def _is_sound(self, sample: Sample, dtype: str, leaves: list[torch.Tensor]) -> bool:
        """Return whether CPU gives the same results if unwritten memory, or memory around arguments, has other content.

        This content has the magnitude of 1, so that it changes results by more than rounding does.
        """
        known = facts(sample.overload)
        if known.unstable:
            return True
        with host_heap.leftovers(_LEFTOVERS), guarded_heap.watched(_LEFTOVERS ^ 0xFF):
            try:
                tensors = tensors_of(sample, dtype, self._values)
                moved = {id(t): Surrounded(t) for t in tensors}
                around = list(moved.values())
                again = _leaves(_made(sample, dtype, [moved[id(t)].tensor for t in tensors]))
            except Exception:  # noqa: BLE001 - the call needs memory that it did not write
                return False
        return alike(leaves, again, known.undefined, ROUNDING) and not any(t.is_overrun for t in around)

    def _reads_gaps(self, sample: Sample, dtype: str) -> bool:
        known = facts(sample.overload)
        if known.unstable:
            return False
        found = []
        for content in _IN_GAPS:
            tensors = tensors_of(sample, dtype, self._values)
            moved = {id(t): with_gaps(t, content) for t in tensors}
            try:
                found.append(_leaves(_made(sample, dtype, [moved[id(t)] for t in tensors])))
            except Exception:  # noqa: BLE001 - CPU takes no such strides
                return False
        return not alike(found[0], found[1], known.undefined)

    def _broadcasts(self, sample: Sample, dtype: str, slot: int, shape: Sequence[int]) -> bool:
        tensors = tensors_of(sample, dtype, self._values)
        expanded = [t.expand(shape).clone() if i == slot else t.clone() for i, t in enumerate(tensors)]
        try:
            ours, true = (_leaves(_made(sample, dtype, given)) for given in (tensors, expanded))
        except Exception:  # noqa: BLE001 - CPU refuses the call, so it does not broadcast
            return False
        return alike(ours, true, facts(sample.overload).undefined, ROUNDING)

    def _is_elementwise(self, sample: Sample, dtype: str) -> bool | None:
        try:
            call, tensors, read = self._of_tensors(sample, dtype)
            return is_elementwise(call, tensors, read, facts(sample.overload).undefined)
        except Exception:  # noqa: BLE001 - CPU refuses the call, or it has no dense results
            return None

    def _copies(self, sample: Sample, dtype: str) -> bool:
        return are_copies(*self._of_tensors(sample, dtype))

    def _of_tensors(self, sample: Sample, dtype: str) -> tuple[Call, list[torch.Tensor], list[int]]:
        """Return a sample's call as a function of its tensors, the tensors, and the indices of those that it reads."""
        made = partial(_made, sample, dtype)
        read = [s.index for s in sample.tensors if s.pool]
        return lambda ts: _leaves(made(ts)), tensors_of(sample, dtype, self._values), read

    def _is_inexact(self, sample: Sample, dtype: str) -> bool:
        tensors, narrow = tensors_of(sample, dtype, self._values), getattr(torch, dtype)
        wide = [t.to(torch.float64) if t.dtype == narrow else t.clone() for t in tensors]
        try:
            ours = _leaves(_made(sample, dtype, tensors))
            true = _leaves(_made(sample, "float64", wide))
        except Exception:  # noqa: BLE001 - there is no float64 result to compare with
            return False
        return any(is_far(*pair) for pair in zip(ours, true, strict=True))


def _made(sample: Sample, dtype: str, tensors: list[torch.Tensor]) -> Any:
    """Return the results of the call on these tensors. If it raises RuntimeError, repeat it without oneDNN."""
    args = [argument(a, dtype, tensors) for a in sample.args]
    kwargs = {k: argument(a, dtype, tensors) for k, a in sample.kwargs}
    call = partial(call_of(sample.overload), *args, **kwargs)
    torch.default_generator.manual_seed(SEED)
    with torch.no_grad():
        try:
            return call()
        except RuntimeError:
            with without_onednn():
                return call()


def _has_larger_results(sample: Sample, dtype: str, most: int) -> bool:
    """Return whether the call has results of more elements than ``most``, by torch's meta kernels."""
    tensors = [torch.empty(s.shape, dtype=getattr(torch, s.dtype or dtype), device="meta") for s in sample.tensors]
    try:
        elements: int = sum(t.numel() for t in _leaves(_made(sample, dtype, tensors)))
    except Exception:  # noqa: BLE001 - torch has no such call without memory
        return False
    return elements > most


def _question(what: str, sample: Sample, dtype: str) -> list[Any]:
    """Return a question about a call, for JSON. It is equal for samples that differ only in name, dtypes or axis."""
    asked = encode(replace(sample, name="", dtypes=(dtype,), axis="", own_kernel=False), 0)
    return [what, sample.overload, asked, dtype]


def _packed(outcome: Ran | Exception | None) -> Any:
    if isinstance(outcome, Ran):
        return [[s.shape for s in outcome.sample.tensors], outcome.dtypes, outcome.shapes]
    return str(outcome) if outcome else None


def _unpacked(found: Any, sample: Sample) -> Ran | Exception | None:
    if isinstance(found, list):
        shapes, dtypes, of_results = found
        slots = [replace(s, shape=tuple(shape)) for s, shape in zip(sample.tensors, shapes, strict=True)]
        return Ran(with_tensors(sample, slots), tuple(dtypes), tuple(map(tuple, of_results)))
    return None if found is None else RuntimeError(found)


def _leaves(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    return [t for r in result for t in _leaves(r)] if isinstance(result, (list, tuple)) else []
