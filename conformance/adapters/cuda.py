"""NVIDIA GPUs."""

from __future__ import annotations

from typing import ClassVar

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first GPU, with float32 and sums of half precision as exact as possible.

    torch's own modules offer everything else. In the environments, an error appears at the op that caused it.
    """

    NAME, DEVICE = "cuda", "cuda:0"
    sticky_errors = True
    hidden_by: ClassVar[dict[str, str]] = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    INSTALL = "install a build of torch with CUDA (https://pytorch.org/get-started) on a machine with an NVIDIA GPU"

    def __init__(self) -> None:
        super().__init__()
        import torch

        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False

    def environments(self) -> dict[str, dict[str, str]]:
        """Return environments with an allocation for each tensor, blocking launches, or both for compute-sanitizer."""
        no_caching = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        blocking = {"CUDA_LAUNCH_BLOCKING": "1"}
        return {"no_caching": no_caching, "blocking": blocking, "for_sanitizer": no_caching | blocking}
