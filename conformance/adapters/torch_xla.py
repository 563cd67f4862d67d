"""torch_xla, which records work and compiles it when a step ends or a value is needed."""

from __future__ import annotations

from typing import IO, Any

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first device of the runtime that ``PJRT_DEVICE`` names. ``torch.xla`` and ``torch.accelerator`` lack it."""

    NAME, DEVICE, MODULE = "torch_xla", "xla:0", "torch_xla"
    INSTALL = "`pip install torch_xla` of the same version as torch; PJRT_DEVICE=CPU needs no device"

    def mark_step(self) -> None:
        """End the step, which starts the recorded work."""
        import torch_xla

        torch_xla.sync()

    def synchronize(self) -> None:
        """Start the recorded work, and return when it is done."""
        import torch_xla.core.xla_model as xm

        self.mark_step()
        xm.wait_device_ops()

    def save(self, value: Any, file: IO[bytes]) -> None:
        """Run the recorded work that a value needs, and write the value as CPU tensors."""
        import torch_xla.core.xla_model as xm

        xm.save(value, file)

    def environments(self) -> dict[str, dict[str, str]]:
        """Return an environment in which each step waits for its work."""
        return {"sync_wait": {"XLA_SYNC_WAIT": "1"}}
