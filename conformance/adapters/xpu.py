"""Intel GPUs, by SYCL."""

from __future__ import annotations

from typing import ClassVar

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first GPU. SYCL does not work in a forked process."""

    NAME, DEVICE = "xpu", "xpu:0"
    INSTALL = "install a build of torch with XPU (https://pytorch.org/get-started) on a machine with an Intel GPU"
    isolation = "spawn"
    #: The first variable leaves SYCL only the CPU, see https://intel.github.io/llvm/EnvironmentVariables.html
    #: and dpctl's guide to managing devices. ``torch.xpu.device_count`` can ask Level Zero in place of SYCL. With an
    #: empty mask, which changes nothing else, it asks SYCL.
    hidden_by: ClassVar[dict[str, str]] = {"ONEAPI_DEVICE_SELECTOR": "*:cpu", "ZE_AFFINITY_MASK": ""}

    def environments(self) -> dict[str, dict[str, str]]:
        """Return an environment in which Level Zero waits for each command."""
        return {"blocking": {"ZE_SERIALIZE": "2"}}
