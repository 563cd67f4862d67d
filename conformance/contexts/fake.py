"""Predictions of calls with fake tensors, compared with the device's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch

from conformance import torch_versions
from conformance.contexts.model import Context, How, Op
from conformance.contexts.trees import on_host, tensors_of, with_tensors

# Operators for which torch predicts CUDA's results on all devices but CPU. A backend must have CPU's sizes and
# strides, which plain calls compare.
_PREDICTED_FOR_CUDA = {
    "_embedding_bag": "bag_size and max_indices of a sum are empty",
    "_embedding_bag_forward_only": "bag_size and max_indices of a sum are empty",
    "embedding_bag": "bag_size and max_indices of a sum are empty",
    "_native_batch_norm_legit": "the statistics of an inference are not empty",
    "native_batch_norm": "the statistics of an inference are not empty",
    "nonzero_static": "the result is transposed",
}


class NotPredicted(NotImplementedError):
    """Raised for a call of which torch predicts nothing, or something that is wrong on CPU too."""


def described(result: Any, tensors: list[torch.Tensor], where: torch.device) -> list[dict[str, Any]]:
    """Return what can be predicted of each result, and of each argument after the call."""
    from torch.multiprocessing.reductions import StorageWeakRef

    results = tensors_of(result)
    strided = [t for t in [*tensors, *results] if t.layout == torch.strided]
    storages = [StorageWeakRef(t.untyped_storage()).cdata for t in strided]
    shares = {id(t): storages.index(storage) for t, storage in zip(strided, storages)}
    return [
        {
            "size": tuple(t.shape), "dtype": t.dtype, "layout": t.layout,
            "place among storages": shares.get(id(t)),
            "stride": t.stride() if t.layout == torch.strided else None,
            "device": "its own" if t.device == where else str(t.device),
        }
        for t in [*results, *tensors]
    ]  # fmt: skip


def compared(
    op: Callable[..., Any], where: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, list[dict[str, Any]], str]:
    """Return the result of a call, what is true of it, and how the prediction differs from that, "" if it does not.

    Raises NotPredicted if torch predicts nothing.
    """
    import gc

    from torch._subclasses import fake_tensor

    silent = (
        fake_tensor.DynamicOutputShapeException, fake_tensor.DataDependentOutputException,
        fake_tensor.UnsupportedOperatorException, fake_tensor.UnsupportedFakeTensorException, NotImplementedError,
    )  # fmt: skip
    given = tensors_of([*args, *kwargs.values()])
    with fake_tensor.FakeTensorMode(allow_fallback_kernels=False) as mode, torch.no_grad():
        fakes = [mode.from_tensor(t) for t in given]
    rest = list(fakes)
    positional, named = with_tensors([list(args), list(kwargs.values())], lambda t: rest.pop(0))
    result = op(*args, **kwargs)
    error = ""
    try:
        with mode:
            predicted = op(*positional, **dict(zip(kwargs, named)))
    except silent as e:
        error = f"torch predicts nothing: {type(e).__name__}"
    except Exception as e:  # noqa: BLE001 - the prediction is that the call raises
        if "found type 'FakeTensor'" not in str(e):
            return result, [], f"torch predicts {type(e).__name__}"
        error = "torch reads no number from a fake tensor of this device"
    finally:
        gc.collect(0)  # exceptions in torch that refer to themselves, and to the frames of the callers
    if error:  # raised here, where no other exception keeps frames alive
        raise NotPredicted(error)
    ours, theirs = described(result, given, where), described(predicted, fakes, where)
    if len(ours) != len(theirs):
        return result, ours, "torch predicts another number of tensors"
    found = [
        f"{key} of tensor {i} is {one[key]}, and {other[key]} is predicted"
        for i, (one, other) in enumerate(zip(ours, theirs))
        for key in one
        if one[key] != other[key] and not (key == "device" and how.facts == "placed by torch")
    ]
    return result, ours, "; ".join(found)


class Fake(Context):
    """The device returns what ``FakeTensorMode`` predicts: sizes, strides, dtypes, devices and aliasing.

    If a prediction for the same call on CPU is wrong in the same way, this is torch's own error, and not the
    device's. It is not judged, unless the backend registered the kernel for Meta that made the prediction. The device
    of a result by torch's own kernel is not judged either: without an argument ``device`` it is the default device,
    but fake tensors are on the device of the arguments.
    """

    name = "fake"
    helpers = (NotPredicted, tensors_of, with_tensors, on_host, described, compared)

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op. Raises NotPredicted if nothing is judged, AssertionError if the device differs."""
        host = torch.device("cpu")
        if device == host:
            return op(*args, **kwargs)
        copies = on_host(args, kwargs)
        result, ours, conflict = compared(op, device, how, args, kwargs)
        if conflict and how.facts != "own":
            _, theirs, same = compared(op, host, how, *copies)
            if same == conflict:
                raise NotPredicted(f"torch's own prediction is wrong on CPU too: {conflict}")
            if how.facts not in ("", "placed by torch") and ours == theirs:
                raise NotPredicted(f"torch predicts what CUDA returns, and the device does as CPU: {how.facts}")
        if conflict:
            raise AssertionError(conflict)
        return result

    def load(self) -> None:
        """Make a prediction, for which torch loads a thousand modules."""
        x = torch.ones(1)
        self.call(torch.ops.aten.add.Tensor, torch.device("cpu:0"), How("", "", nullcontext), [x, x], {})

    def facts_of(self, overload: str) -> str:
        """Return "own" if the backend registered the kernel for Meta, else the prediction that holds for CUDA alone.

        For other overloads, return "placed by torch" if the backend leaves the op to a kernel of torch that composes
        it on all devices, else "".
        """
        if torch_versions.is_registered_by_backend(overload, "Meta"):
            return "own"
        composed = torch_versions.is_composed(overload) and not torch_versions.has_own_kernel(overload, "PrivateUse1")
        placed = "placed by torch" if composed else ""
        return _PREDICTED_FOR_CUDA.get(overload.partition(".")[0], placed)

    def refuses(self, error: BaseException | None) -> bool:
        """Return whether torch predicts nothing for the call, or something that is wrong on CPU too."""
        return isinstance(error, NotPredicted)
