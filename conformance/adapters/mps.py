"""Apple's GPUs, by Metal Performance Shaders."""

from __future__ import annotations

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The GPU of a Mac. Metal does not work in a forked process."""

    NAME, DEVICE = "mps", "mps:0"
    INSTALL = "it needs macOS 12.3 or later and a build of torch with MPS (https://pytorch.org/get-started)"
    isolation = "spawn"

    def environments(self) -> dict[str, dict[str, str]]:
        """Return an environment in which ops without a kernel run on CPU instead of raising."""
        return {"fallback": {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}}
