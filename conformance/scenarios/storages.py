"""Storages whose size changes, and tensors that get another storage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch

from conformance.scenarios.asking import another, held
from conformance.scenarios.model import NotOffered, Results, first_line, name_of, offered, on, scenario

DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)
#: Numbers of elements before and after a growth: within one block of an allocator, beyond the block, and far beyond it.
GROWTHS = ((1, 2), (2, 1000), (32, 40), (100, 129), (1000, 1001), (5000, 70_000))


def _values(n: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return ``n`` values of period 251, so that no block of a power of two repeats."""
    return on(device, (torch.arange(n) % 251).to(dtype))


def _for_each_dtype(made: Callable[[str, torch.dtype], Results]) -> Results:
    """Return the results of ``made`` for each dtype, or NotOffered under the dtype's name."""
    results: Results = {}
    for dtype in DTYPES:
        name = name_of(dtype)
        try:
            results.update(made(name, dtype))
        except NotOffered as e:
            results[name] = e
    return results


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return torch.tensor(tensor.untyped_storage().nbytes())


@scenario(exact=True)
def emptied_and_filled_again(device: str) -> Results:
    """Return sizes and values of a storage that is resized to 0 bytes and back, as sharding frees parameters."""

    def made(name: str, dtype: torch.dtype) -> Results:
        found = (_emptied(f"{name}_{n}", _values(n, dtype, device)) for n in (1, 100, 5000))
        return {key: result for results in found for key, result in results.items()}

    return _for_each_dtype(made)


def _emptied(name: str, tensor: torch.Tensor) -> Results:
    values, storage, view = tensor.clone(), tensor.untyped_storage(), tensor[tensor.numel() // 2 :]
    size = storage.nbytes()
    try:
        storage.resize_(0)
    except NotImplementedError as e:
        raise NotOffered(f"UntypedStorage.resize_: {first_line(e)}") from e
    emptied = torch.tensor([storage.nbytes(), view.untyped_storage().nbytes(), tensor.numel()])
    storage.resize_(size)
    tensor.copy_(values)
    after = torch.tensor([storage.nbytes(), view.untyped_storage().nbytes(), tensor.numel()])
    return {f"{name}_emptied": emptied, f"{name}_filled": after, f"{name}_values": tensor, f"{name}_view": view}


@scenario(exact=True)
def grown_storage_keeps_bytes(device: str) -> Results:
    """Return the kept values and the size in bytes of storages that grow and shrink."""
    results: Results = {}
    for few, many in GROWTHS:
        grown, shrunk = _values(few, torch.int64, device), _values(many, torch.int64, device)
        for name, tensor, n in ((f"{few}_to_{many}", grown, many), (f"{many}_to_{few}", shrunk, few)):
            kept = tensor[: min(few, n)]
            found = offered(partial(_resized, kept, tensor, n))
            results[f"{name}_values"] = found
            results[f"{name}_bytes"] = found if isinstance(found, NotOffered) else _bytes_of(tensor)
    return results


def _resized(kept: torch.Tensor, tensor: torch.Tensor, n: int) -> torch.Tensor:
    tensor.untyped_storage().resize_(n * tensor.element_size())
    return kept.clone()


@scenario(exact=True)
def grown_tensor_keeps_elements(device: str) -> Results:
    """Return the elements that ``resize_`` keeps, the size in bytes, and what an earlier view sees of a write."""

    def made(name: str, dtype: torch.dtype) -> Results:
        results: Results = {}
        for few, many in GROWTHS:
            tensor = _values(few, dtype, device)
            view, grown = tensor[:1], f"{name}_{few}_to_{many}"
            tensor.resize_(many)
            results[grown] = tensor[:few].clone()
            results[f"{grown}_bytes"] = _bytes_of(tensor)
            tensor[:few].fill_(1)  # the first element was 0
            results[f"{grown}_view"] = view
        return results

    return _for_each_dtype(made)


@scenario(exact=True)
def shrunk_tensor_keeps_storage(device: str) -> Results:
    """Return the elements of a tensor that ``resize_`` makes smaller and as large as it was, and the size in bytes."""

    def made(name: str, dtype: torch.dtype) -> Results:
        results: Results = {}
        for few, many in GROWTHS:
            tensor = _values(many, dtype, device)
            results[f"{name}_{many}_to_{few}_bytes"] = _bytes_of(tensor.resize_(few))
            results[f"{name}_{many}_to_{few}"] = tensor.resize_(many)
        return results

    return _for_each_dtype(made)


@scenario(exact=True)
def resized_views(device: str) -> Results:
    """Return what ``resize_`` makes of views: those with an offset, transposed and strided ones, and of other ranks."""

    def base() -> torch.Tensor:
        return _values(24, torch.float32, device)

    made = {
        "offset_grows": base()[2:].resize_(30), "offset_shrinks": base()[2:].resize_(5),
        "offset_within": base()[2:6].resize_(20), "offset_far": base()[23:].resize_(1000),
        "matrix_grows": base().view(4, 6).resize_(6, 6), "transposed": base().view(4, 6).t().resize_(2, 3),
        "strided": base()[::2].resize_(6), "to_nothing": base().resize_(0), "to_no_dims": base().resize_(()),
        "channels_last": base().view(1, 2, 3, 4).resize_(1, 2, 2, 2, memory_format=torch.channels_last),
        "like": base().resize_as_(torch.empty(3, 4, device=device)),
    }  # fmt: skip
    results: Results = {}
    for name, tensor in made.items():
        results[f"{name}_bytes"] = _bytes_of(tensor)
        flat = tensor.as_strided((tensor.untyped_storage().nbytes() // 4,), (1,), 0)
        results[f"{name}_kept"] = flat[:24].clone()  # elements beyond the old ones are not initialized
        results[f"{name}_view"] = torch.tensor([tensor.dim(), *tensor.shape, *tensor.stride(), tensor.storage_offset()])
    return results


@scenario(exact=True)
def set_to_another_storage(device: str) -> Results:
    """Return tensors after the forms of ``set_``, and what the source sees of writes through them."""
    source = _values(24, torch.float32, device)
    storage, results = source.untyped_storage(), {}
    made = {
        "tensor": torch.empty(0, device=device).set_(source),
        "tensor_with_offset": torch.empty(0, device=device).set_(source[5:]),
        "transposed_tensor": torch.empty(0, device=device).set_(source.view(4, 6).t()),
        "strided_tensor": torch.empty(3, device=device).set_(source[1::3]),
        "storage": torch.empty(0, device=device).set_(storage),
        "storage_with_offset": torch.empty(0, device=device).set_(storage, 7, (3, 2), (1, 4)),
        "storage_for_a_view": torch.empty(9, device=device)[4:].set_(storage),
        "storage_view_of_view": torch.empty(9, device=device)[4:].set_(storage, 3, (5,), (2,)),
        "nothing": torch.ones(4, device=device).set_(),
    }
    for name, tensor in made.items():
        results[f"{name}_place"] = torch.tensor(
            [tensor.storage_offset(), *tensor.shape, *tensor.stride(), tensor.untyped_storage().nbytes()]
        )
        results[name] = tensor.clone()
        tensor.add_(100)
        results[f"{name}_source"] = source.clone()
    return {**results}


@scenario(exact=True, area="memory")
def set_beyond_the_storage(device: str) -> Results:
    """``set_`` to sizes that reach behind a storage lets it grow; all tensors in it see the bytes that it had."""
    results: Results = {}
    forms = {"sizes": (0, (9,), (1,)), "offset": (4, (5,), (1,)), "strides": (1, (3, 2), (4, 1))}
    for name, (offset, size, stride) in forms.items():
        source = _values(6, torch.float32, device)
        tensor = torch.empty(0, device=device).set_(source.untyped_storage(), offset, size, stride)
        held = [t.untyped_storage().nbytes() for t in (source, tensor)]
        results |= {f"{name}_bytes": torch.tensor(held), f"{name}_kept": source.clone()}
        last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
        if min(held) <= last * tensor.element_size():  # a write would damage the memory after the storage
            continue
        tensor.fill_(100)
        results[name] = tensor.clone()
        results[f"{name}_source"] = source.clone()
    return results


@scenario(exact=True, area="memory", accelerators=True)
def storages_of_other_devices(device: str) -> Results:
    """A tensor takes no storage of another device: ``set_`` raises an error, for the host's and a second device's."""

    def refuses(elsewhere: Callable[[], str], source: Callable[[torch.Tensor], Any]) -> bool:
        tensor, other = torch.empty(0, device=device), torch.ones(3, device=elsewhere())
        try:
            tensor.set_(source(other))
        except (RuntimeError, TypeError):
            return True
        return False

    places: dict[str, Callable[[], str]] = {"host": lambda: "cpu", "second": lambda: another(device)}
    sources: dict[str, Callable[[torch.Tensor], Any]] = {"tensor": lambda x: x, "storage": torch.Tensor.untyped_storage}
    pairs = product(places, sources)
    return held(device, {f"{where}.{what}": partial(refuses, places[where], sources[what]) for where, what in pairs})


@scenario(exact=True, area="memory")
def new_elements_under_determinism(device: str) -> Results:
    """``use_deterministic_algorithms`` fills new elements with NaN, or with the largest value of an integer."""

    def made(name: str, dtype: torch.dtype) -> Results:
        old = _values(2, dtype, device)
        forms: dict[str, Callable[[], torch.Tensor]] = {
            "empty": lambda: torch.empty(5, dtype=dtype, device=device),
            "empty_strided": lambda: torch.empty_strided((2, 3), (1, 2), dtype=dtype, device=device),
            "empty_like": lambda: torch.empty_like(old),
            "new_empty": lambda: old.new_empty(7),
            "grown": lambda: old.clone().resize_(300),
        }
        return {f"{name}_{form}": offered(partial(_filled, make)) for form, make in forms.items()}

    return _for_each_dtype(made)


def _filled(make: Callable[[], torch.Tensor]) -> torch.Tensor:
    before, warns = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return make()
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warns)


#: Calls of several kinds of ops with exact results. For some of the ops, a backend falls back to CPU.
NEW_RESULTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "clone": torch.clone,
    "relu": torch.relu,
    "add": lambda x: x + 1,
    "comparison": lambda x: x > 2,
    "where": lambda x: torch.where(x > 2, x, -x),
    "conversion": lambda x: x.to(torch.int32),
    "sum": lambda x: x.sum(0),
    "argmax": lambda x: x.argmax(1),
    "product": lambda x: x @ x.t(),
    "cat": lambda x: torch.cat((x, x)),
    "rows": lambda x: x[torch.tensor([2, 0], device=x.device)],
    "nonzero": torch.nonzero,
    "sorted": lambda x: x.sort(1).values,
    "median": lambda x: x.median(1).indices,
    "running_sum": lambda x: x.cumsum(0),
    "histogram": lambda x: torch.histc(x, bins=8, min=0, max=8),
    "counts": lambda x: torch.bincount(x.flatten().long()),
    "crossed": lambda x: torch.linalg.cross(x[:, :3], x[:, 1:4]),
    "rolled": lambda x: x.roll(1, 0),
    "triangle": torch.tril,
    "padded": lambda x: torch.nn.functional.pad(x[None], (1, 1), mode="reflect"),
    "pooled": lambda x: torch.nn.functional.max_pool2d(x[None, None], 2),
    "positions": lambda x: torch.searchsorted(x.sort(1).values, x),
    "blocks": lambda x: torch.block_diag(x, x),
}


@scenario(exact=True, area="memory")
def results_grow(device: str) -> Results:
    """The result of an op can be resized, and can be the ``out=`` of a call whose result is larger."""

    def resized(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        result = make(_values(24, torch.float32, device).view(4, 6))
        kept = result.numel()
        return result.resize_(10 * kept + 1)[:kept]

    def given(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        result = make(_values(24, torch.float32, device).view(4, 6))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about an `out=` that has elements and another size
            torch.cat([_values(100, result.dtype, device), _values(300, result.dtype, device)], out=result)
        return result

    try:
        torch.empty(2, device=device).resize_(9)
    except RuntimeError as e:  # other programs find that
        raise NotOffered(f"tensors that can be resized: {first_line(e)}") from e
    results: Results = {}
    for name, make in NEW_RESULTS.items():
        results[f"{name}.resized"] = offered(partial(resized, make))
        results[f"{name}.given"] = offered(partial(given, make))
    return results


@scenario(exact=True, area="training")
def results_of_inference_mode(device: str) -> Results:
    """What an op makes under ``torch.inference_mode()`` is an inference tensor, whatever kernel makes it."""
    x = _values(24, torch.float32, device).view(4, 6)

    def is_inference(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        with torch.inference_mode():
            return torch.tensor(make(x).is_inference())

    return {name: offered(partial(is_inference, make)) for name, make in NEW_RESULTS.items()}


#: Changes of the size, the place or the storage of 6 floats. Each must raise.
REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "resize_.negative": lambda x: x.resize_(-2),
    "resize_.format_of_another_rank": lambda x: x.resize_(4, memory_format=torch.channels_last),
    "resize_.format_of_nothing": lambda x: x.resize_(4, memory_format=torch.preserve_format),
    "resize_.with_gradient": lambda x: x.requires_grad_().resize_(3),
    "resize_as_.format_of_another_rank": lambda x: x.resize_as_(x[:2], memory_format=torch.channels_last),
    "set_.other_dtype": lambda x: x.set_(x.to(torch.int64)),
    "set_.negative_offset": lambda x: x.set_(x.untyped_storage(), -1, (2,), (1,)),
    "set_.negative_size": lambda x: x.set_(x.untyped_storage(), 0, (-2,), (1,)),
    "set_.negative_stride": lambda x: x.set_(x.untyped_storage(), 3, (2,), (-1,)),
    "set_.more_strides": lambda x: x.set_(x.untyped_storage(), 0, (2,), (1, 1)),
    "storage.negative": lambda x: x.untyped_storage().resize_(-1),
    "storage.copy_of_another_size": lambda x: x.untyped_storage().copy_(x[:2].clone().untyped_storage()),
    "as_strided.past_the_end": lambda x: x.as_strided((7,), (1,)),
    "as_strided.negative_offset": lambda x: x.as_strided((2,), (1,), -1),
    "as_strided.negative_stride": lambda x: x.as_strided((2,), (-1,), 3),
    "view.of_wider_elements": lambda x: x[:3].view(torch.int64),
    "view.of_wider_elements_inside": lambda x: x[1:5].view(torch.int64),
    "view.of_another_number": lambda x: x.view(4),
    "view_as_complex.of_odd_rows": lambda x: torch.view_as_complex(x.view(2, 3)),
}


@scenario(exact=True, area="memory")
def changes_that_are_refused(device: str) -> Results:
    """A size, a place or a storage that a tensor cannot have raises an error, and leaves all elements as they were."""

    def refused(change: Callable[[torch.Tensor], object]) -> torch.Tensor:
        x = _values(6, torch.float32, device)
        kept = x.detach()
        try:
            change(x)
        except NotImplementedError:
            raise
        except (RuntimeError, TypeError, ValueError):
            return torch.tensor([True, kept.tolist() == [*range(6)]])
        return torch.tensor([False, False])

    return {name: offered(partial(refused, change)) for name, change in REFUSED.items()}
