"""Intel GPUs, by SYCL."""

from __future__ import annotations

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first GPU. SYCL does not work in a forked process."""

    NAME, DEVICE = "xpu", "xpu:0"
    INSTALL = "install a build of torch with XPU (https://pytorch.org/get-started) on a machine with an Intel GPU"
    isolation = "spawn"

    def environments(self) -> dict[str, dict[str, str]]:
        """Level Zero waits for each command."""
        return {"blocking": {"ZE_SERIALIZE": "2"}}
