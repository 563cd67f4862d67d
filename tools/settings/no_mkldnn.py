"""A pytest plugin that disables oneDNN in this process and its forked children."""

from __future__ import annotations

import torch

torch.backends.mkldnn.set_flags(_enabled=False)
