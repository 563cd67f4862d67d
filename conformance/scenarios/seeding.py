"""Functions of a device's module about random numbers: the devices that each of them seeds, saves and restores.

CPU has no counterpart. Its results are the expected ones: each property holds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from conformance.scenarios.asking import Property, accelerator, held, module_of, named, on_device
from conformance.scenarios.model import NotOffered, Results, scenario
from conformance.scenarios.new_processes import results_of

MANY = 100  # draws: the chance that two streams agree in all of them is negligible
SEED = 20


class _Seeds:
    """The functions of a device's module about random numbers, and draws on its first two devices."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._kind = torch.device(device).type

    def _call(self, name: str, *of: Any) -> Any:
        return named(module_of(self._kind), name)(*of)

    def _current(self) -> int:
        accelerator(self._device)
        return int(torch.accelerator.current_device_index())

    def _drawn(self, index: int) -> torch.Tensor:
        return torch.rand(MANY, device=f"{self._kind}:{index}").cpu()

    def _of_every(self) -> torch.Tensor:
        return torch.cat([self._drawn(index) for index in range(torch.accelerator.device_count())])

    def _repeats(self, seed: str, draw: Callable[[], torch.Tensor]) -> bool:
        streams = []
        for _ in range(2):
            self._call(seed, SEED)
            streams.append(draw())
        return bool(torch.equal(*streams))

    def of_current(self) -> bool:
        return self._repeats("manual_seed", partial(self._drawn, self._current()))

    def leaves_others(self, name: str, *seed: int) -> bool:
        """Return whether another device draws the same with and without a call of the function."""
        other = 1 - self._current()
        if torch.accelerator.device_count() < 2:
            raise NotOffered("a second device")
        self._call("manual_seed_all", SEED)
        wanted = [self._drawn(other), self._drawn(other)]
        self._call("manual_seed_all", SEED)
        found = [self._drawn(other)]
        self._call(name, *seed)
        found.append(self._drawn(other))
        return bool(torch.equal(torch.cat(found), torch.cat(wanted)))

    def reaches_others(self, name: str) -> bool:
        """Return whether a call of the function changes the draws of another device."""
        return not self.leaves_others(name)

    def of_all(self) -> bool:
        self._current()
        return self._repeats("manual_seed_all", self._of_every)

    def told(self) -> bool:
        self._current()
        with suppress(NotOffered):
            self._call("manual_seed_all", SEED + 1)
        self._call("manual_seed", SEED)
        return bool(self._call("initial_seed") == SEED)

    def chosen(self, name: str) -> bool:
        self._current()
        seeds = set()
        for _ in range(2):
            self._call("manual_seed_all", SEED)
            self._call(name)
            seeds.add(self._call("initial_seed"))
        return SEED not in seeds and len(seeds) == 2

    def restored(self) -> bool:
        self._current()
        self._call("manual_seed_all", SEED)
        self._call("manual_seed", SEED + 1)  # so that the states differ
        self._of_every()
        saved = self._call("get_rng_state_all")
        wanted = self._of_every()
        self._call("set_rng_state_all", saved)
        return len(saved) == torch.accelerator.device_count() and bool(torch.equal(self._of_every(), wanted))


@scenario(exact=True, area="devices", accelerators=True)
def seeds_of_the_module(device: str) -> Results:
    """``torch.<device>`` seeds the current device or all, tells the seed, and saves and restores the states of all.

    Each device is the current one in turn.
    """
    seeds = _Seeds(device)
    properties: dict[str, Property] = {
        "manual_seed": seeds.of_current,
        "manual_seed_of_current_alone": partial(seeds.leaves_others, "manual_seed", SEED + 1),
        "manual_seed_all": seeds.of_all, "initial_seed": seeds.told, "seed": partial(seeds.chosen, "seed"),
        "seed_of_current_alone": partial(seeds.leaves_others, "seed"), "seed_all": partial(seeds.chosen, "seed_all"),
        "seed_all_of_others": partial(seeds.reaches_others, "seed_all"), "states_of_all": seeds.restored,
    }  # fmt: skip

    def on_second(holds: Property) -> bool:
        accelerator(device)
        if torch.accelerator.device_count() < 2:
            raise NotOffered("a second device")
        with on_device(1):
            return holds()

    return held(device, properties | {f"{name}_on_second": partial(on_second, one) for name, one in properties.items()})


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def seeds_before_the_first_use(device: str) -> Results:
    """A seed that is given before the device is used does not initialize it, and is that of the first draws."""
    if device == "cpu":
        return {"uninitialized": torch.tensor(True), "drawn": torch.tensor(True)}
    (found,) = results_of(device, _seeded_first, [(device,)])
    return found


def _seeded_first(device: str) -> Results:
    """Seed all devices in this new process before anything else."""
    initialized = named(module_of(device), "is_initialized")
    if initialized():
        raise NotOffered("a new process in which the device is not initialized")
    torch.manual_seed(SEED)
    left_alone = not initialized()
    first = torch.rand(MANY, device=device)
    torch.manual_seed(SEED)
    again = torch.rand(MANY, device=device)
    return {"uninitialized": torch.tensor(left_alone), "drawn": torch.tensor(torch.equal(first.cpu(), again.cpu()))}
