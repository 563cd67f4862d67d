"""Storages as objects: made, read, written, copied and saved without a tensor."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial

import torch

from conformance.scenarios.exchange import exchanged
from conformance.scenarios.model import NotOffered, Results, first_line, offered, reloaded, scenario

SIZE = 12  # bytes of a storage

Make = Callable[[str], torch.UntypedStorage]
Read = Callable[[torch.UntypedStorage], list[int]]


def _bytes() -> torch.Tensor:
    return torch.arange(SIZE, dtype=torch.uint8)


def _of(device: str) -> torch.UntypedStorage:
    return _bytes().to(device).untyped_storage()


def _new(device: str) -> torch.UntypedStorage:
    return torch.UntypedStorage(SIZE, device=device)


def _saved(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    found: torch.UntypedStorage | torch.TypedStorage = reloaded(storage, weights_only=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch, which has made a typed storage, warns about typed storages
        return found.untyped() if isinstance(found, torch.TypedStorage) else found


def _written(storage: torch.UntypedStorage, where: int | slice, value: int) -> torch.UntypedStorage:
    storage[where] = value
    return storage


MADE: dict[str, Make] = {
    "new": lambda device: _new(device).fill_(3),
    "without_bytes": lambda device: torch.UntypedStorage(0, device=device),
    "filled": lambda device: _of(device).fill_(7),
    "byte_written": lambda device: _written(_of(device), 5, 200),
    "bytes_written": lambda device: _written(_of(device), slice(2, 5), 1),
    "cloned": lambda device: _of(device).clone(),
    "copied": lambda device: _new(device).copy_(_of(device)),
    "copied_from_host": lambda device: _new(device).copy_(_of("cpu")),
    "copied_without_blocking": lambda device: _new(device).copy_(_of(device), non_blocking=True),
    "sent": lambda device: _of("cpu").to(device=torch.device(device)),
    "deeply_copied": lambda device: copy.deepcopy(_of(device)),
    "shallowly_copied": lambda device: copy.copy(_of(device)),
    "saved": lambda device: _saved(_of(device)),
    "of_a_view": lambda device: _bytes().to(device)[3:].untyped_storage(),
}
READ: dict[str, Read] = {
    "bytes": lambda storage: [storage[3], storage[-1]],
    "list": lambda storage: storage.tolist(),
    "iterated": lambda storage: [*storage],
    "part": lambda storage: [*storage[2:6]],
    "on_host": lambda storage: storage.cpu().tolist(),
    "by_a_tensor": lambda storage: torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage).tolist(),
    "sizes": lambda storage: [storage.nbytes(), storage.size(), len(storage), storage.element_size()],
    "beyond_its_end": lambda storage: [_is_refused(storage, SIZE), _is_refused(storage, -SIZE - 1)],
}


def _is_refused(storage: torch.UntypedStorage, index: int) -> bool:
    try:
        storage[index]
    except IndexError:
        return True
    return False


def _gradient(x: torch.Tensor) -> torch.Tensor:
    weight = x.to(torch.float32).requires_grad_()
    (found,) = torch.autograd.grad((weight * 2).sum(), weight)
    return found


#: Ways to get a tensor of 12 bytes, by ops of all kinds. Its storage may be resizable or not.
OWNERS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x[3:],
    "detached": lambda x: x.detach(),
    "computed": lambda x: x + 1,
    "copied": lambda x: x.clone(),
    "of_an_op_with_two_results": lambda x: x.sort().values,
    "of_an_op_for_few": lambda x: x.to(torch.float32).lgamma().to(torch.uint8),
    "of_a_factory": lambda x: torch.linspace(0, 1, 3, device=x.device),
    "into_nothing": lambda x: torch.add(x, 1, out=torch.empty(0, dtype=x.dtype, device=x.device)),
    "set_": lambda x: torch.empty(0, dtype=x.dtype, device=x.device).set_(x),
    "set_to_nothing": lambda x: x.clone().set_(),
    "from_host": lambda x: torch.zeros(SIZE, dtype=x.dtype).to(x.device),
    "to_host": lambda x: x.cpu(),
    "deeply_copied": copy.deepcopy,
    "exchanged": exchanged,
    "gradient": _gradient,
}


@scenario(exact=True, area="memory")
def storages_that_may_grow(device: str) -> Results:
    """A storage says whether it may grow, as CPU's does, and keeps its first bytes, and its size where it may not."""

    def grown(make: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        storage = make(_bytes().to(device)).untyped_storage()
        says, kept = storage.resizable(), min(4, len(storage))
        before = storage[:kept].tolist()
        try:
            storage.resize_(100)
        except NotImplementedError:
            raise
        except RuntimeError:
            grows = False
        else:
            grows = True
        return torch.tensor([says, grows, storage.nbytes(), storage[:kept].tolist() == before])

    return {name: offered(partial(grown, make)) for name, make in OWNERS.items()}


@scenario(exact=True, area="memory")
def storages_as_objects(device: str) -> Results:
    """Storages are made, read, written, copied and saved without a tensor, on the device that is named."""
    place = torch.empty(0, device=device).device

    def made(make: Make) -> torch.Tensor:
        """Return whether a storage is on the device, its size, and its bytes as a tensor sees them."""
        storage = make(device)
        seen = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        return torch.tensor([storage.device == place, storage.nbytes(), *seen.tolist()])

    def apart(copied: Callable[[torch.UntypedStorage], torch.UntypedStorage]) -> torch.Tensor:
        """Return the bytes of a storage after its copy was written."""
        storage = _of(device)
        copied(storage).fill_(9)
        return torch.tensor(storage.tolist())

    try:
        _new(device)
    except RuntimeError as e:
        if "not recognized" in str(e):  # torch knows which devices have storages
            raise NotOffered(first_line(e)) from e
        raise
    results = {name: offered(partial(made, make)) for name, make in MADE.items()}
    results |= {f"{name}.read": offered(partial(lambda read: torch.tensor(read(_of(device))), read))
                for name, read in READ.items()}  # fmt: skip
    copies = {"clone": torch.UntypedStorage.clone, "deepcopy": copy.deepcopy, "saved": _saved}
    return results | {f"{name}.apart": offered(partial(apart, copied)) for name, copied in copies.items()}
