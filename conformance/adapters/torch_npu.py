"""Ascend NPUs, by torch_npu."""

from __future__ import annotations

from typing import ClassVar

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first NPU."""

    NAME, DEVICE, MODULE = "torch_npu", "npu:0", "torch_npu"
    INSTALL = "install CANN, then `pip install torch_npu` of the same version as torch"

    #: CANN uses the ids before the first invalid id (``envref_07_0028`` of https://www.hiascend.com/document), so an
    #: empty list hides all NPUs. Ray sets it in processes that get no NPU: ``torch.npu.device_count()`` is 0 there.
    hidden_by: ClassVar[dict[str, str]] = {"ASCEND_RT_VISIBLE_DEVICES": ""}

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments with an allocation for each tensor, or with blocking launches."""
        return {
            "no_caching": {"PYTORCH_NO_NPU_MEMORY_CACHING": "1"},
            "blocking": {"ASCEND_LAUNCH_BLOCKING": "1"},
        }
