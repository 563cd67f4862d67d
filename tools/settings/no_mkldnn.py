"""A pytest plugin: CPU kernels of this process, and of those forked from it, do not go through oneDNN."""

from __future__ import annotations

import torch

torch.backends.mkldnn.set_flags(_enabled=False)
