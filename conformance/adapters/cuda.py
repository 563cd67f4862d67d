"""NVIDIA GPUs."""

from __future__ import annotations

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first GPU. What torch's modules offer is enough; the environments bring errors to the op that caused them."""

    NAME, DEVICE = "cuda", "cuda:0"
    INSTALL = "install a build of torch with CUDA (https://pytorch.org/get-started) on a machine with an NVIDIA GPU"

    def environments(self) -> dict[str, dict[str, str]]:
        """An allocation for each tensor, launches that wait, and both, which is how to run under compute-sanitizer."""
        no_caching = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        blocking = {"CUDA_LAUNCH_BLOCKING": "1"}
        return {"no_caching": no_caching, "blocking": blocking, "for_sanitizer": no_caching | blocking}
