"""Programs that continue after an error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from conformance.scenarios import after_errors
from tests.scenarios.altered import untrue


def test_each_call_that_is_to_be_refused_raises_on_cpu() -> None:
    for call in after_errors.REFUSED.values():
        with pytest.raises((RuntimeError, IndexError)):
            call("cpu")


def test_cpu_is_asked_nothing() -> None:
    assert not untrue(after_errors.modes_after_an_error)


@pytest.mark.parametrize("mode", after_errors.MODES)
def test_no_call_that_raises_changes_what_modes_tell_on_cpu(mode: str) -> None:
    wanted = after_errors.within_and_behind("cpu", mode, None)
    for call in after_errors.REFUSED.values():
        assert after_errors.within_and_behind("cpu", mode, call) == wanted


def leaving_grad_mode_on(device: str) -> None:
    torch.set_grad_enabled(True)
    raise RuntimeError("not today")


def switching_autocast_off(device: str) -> None:
    torch.set_autocast_enabled(device, False)
    raise RuntimeError("not today")


@pytest.mark.parametrize(("mode", "refused"), [("no_grad", leaving_grad_mode_on), ("autocast", switching_autocast_off)])
def test_a_mode_that_an_error_ends_is_told_within_its_block(mode: str, refused: Callable[[str], None]) -> None:
    wanted = after_errors.within_and_behind("cpu", mode, None)
    within, *others = after_errors.within_and_behind("cpu", mode, refused)
    assert within != wanted[0]
    assert others == wanted[1:]
