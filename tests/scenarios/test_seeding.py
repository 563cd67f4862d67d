"""The seeds of a device's module: functions that seed the wrong devices are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from conformance.scenarios import seeding
from conformance.scenarios.model import NotOffered

Broken = Callable[[Any], Callable[..., None]]


def _first_alone(module: Any) -> Callable[..., None]:
    return module.default_generators[0].manual_seed  # type: ignore[no-any-return]  # of a module found at run time


def _new_seed_of_first(module: Any) -> Callable[..., None]:
    return module.default_generators[0].seed  # type: ignore[no-any-return]  # of a module found at run time


@pytest.mark.forked
@pytest.mark.parametrize(
    ("name", "broken", "expected"),
    [
        ("seed_all", lambda module: module.seed, {"seed_all_of_others", "seed_all_of_others_on_second"}),
        ("seed", lambda module: module.seed_all, {"seed_of_current_alone", "seed_of_current_alone_on_second"}),
        ("seed", _new_seed_of_first, {"seed_on_second", "seed_of_current_alone_on_second"}),
        (
            "manual_seed",
            _first_alone,
            {"manual_seed_on_second", "manual_seed_of_current_alone_on_second", "initial_seed_on_second"},
        ),
    ],
)
def test_a_seed_for_other_devices_is_found(
    name: str, broken: Broken, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("refnpu")
    module: Any = torch.get_device_module("npu")
    assert not wrong()
    monkeypatch.setattr(module, name, broken(module))
    assert wrong() == expected


def wrong() -> set[str]:
    found = seeding.seeds_of_the_module("npu:0")
    return {name for name, holds in found.items() if not isinstance(holds, NotOffered) and not holds}
