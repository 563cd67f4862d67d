"""Calls under ``torch.autocast``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance import torch_versions
from conformance.backends import Capabilities
from conformance.contexts.model import Context, How, Op
from conformance.inventory import Overload


class Autocast(Context):
    """The device is called under autocast. CPU is called with arguments cast by torch's policy for devices."""

    name = "autocast"

    @staticmethod
    def call(op: Op, device: torch.device, how: How, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the op under autocast to the dtype ``how.variant``; on CPU, cast by the policy ``how.facts``."""
        lower = getattr(torch, how.variant)
        if device != torch.device("cpu"):
            with torch.autocast(device.type, dtype=lower):
                return op(*args, **kwargs)

        def casts(value: Any) -> bool:
            tensor = isinstance(value, torch.Tensor) and value.is_floating_point()
            return tensor and value.dtype != torch.float64

        def cast(value: Any, dtype: torch.dtype) -> Any:
            if isinstance(value, (list, tuple)):
                return [cast(v, dtype) for v in value]
            return value.to(dtype) if casts(value) else value

        def widest(value: Any, dtype: torch.dtype) -> torch.dtype:
            for v in value if isinstance(value, (list, tuple)) else [value]:
                dtype = widest(v, dtype) if isinstance(v, (list, tuple)) else dtype
                dtype = torch.promote_types(dtype, v.dtype) if casts(v) else dtype
            return dtype

        if how.facts == "fp32_set_opt_dtype":
            if casts(args[0]) and kwargs.get("dtype") is None:
                kwargs = {**kwargs, "dtype": torch.float32}
            return op(*args, **kwargs)
        if how.facts == "promote":
            dtype = widest([*args, *kwargs.values()], lower)
        else:
            dtype = torch.float32 if how.facts == "fp32" else lower
        return op(*[cast(a, dtype) for a in args], **{name: cast(a, dtype) for name, a in kwargs.items()})

    def lacks(self, backend: Capabilities) -> str:
        return "" if torch.amp.is_autocast_available(backend.kind) else "autocast"

    def leaves_out(self, overload: str, backend: Capabilities) -> str:
        """Return why the backend's autocast leaves the overload alone, "" if it does not.

        A backend need not follow torch's lists. An op for which it registers no kernel is called as without autocast.
        """
        casts = torch_versions.autocasts(overload, backend.device)
        return "" if casts else "the backend's autocast leaves the op alone"

    def applies(self, overload: Overload) -> bool:
        return bool(self.facts_of(overload.name))

    def facts_of(self, overload: str) -> str:
        return torch_versions.autocast_policies().get(overload, "")
