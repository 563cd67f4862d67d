"""The module that torch knows as ``torch.npu``."""

from __future__ import annotations

import sys

import torch

from refnpu import _C  # type: ignore[attr-defined]  # set by the package before this module is imported


def install() -> None:
    """Give PrivateUse1 its name and torch its ``torch.npu``."""
    torch.utils.rename_privateuse1_backend("npu")
    torch._register_device_module("npu", sys.modules[__name__])
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


def is_available() -> bool:
    return bool(_C.device_count() > 0)


def device_count() -> int:
    return int(_C.device_count())


def current_device() -> int:
    return int(_C.current_device())


def _is_in_bad_fork() -> bool:
    return bool(_C.is_forked())


def manual_seed_all(seed: int) -> None:
    for index in range(device_count()):
        _C.default_generator(index).manual_seed(seed)
