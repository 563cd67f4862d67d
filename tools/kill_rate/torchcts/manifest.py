"""The manifest that tells TorchCTS the features of a device. It names all features but ``torch.compile``.

Tests of a feature that the device does not have fail without a fault, too, so no fault is tried on them.
"""

from __future__ import annotations

import runpy
from importlib.resources import files

manifest = runpy.run_path(str(files("torchcts") / "templates" / "manifest.complete.py"))["manifest"]
manifest["device_count"] = 2
manifest["hardware"] |= {"device_memory_gb": [16, 16]}  # given, since TorchCTS would call the device to find it out
# Each of the 144 tests of torch.compile builds C++, and takes as long as hundreds of others.
manifest["capabilities"] |= {"multi_device": True, "compile": False}
