"""What TorchCTS is told of the device: its broadest template, all levels and capabilities, and the facts of the device.

A capability that the device lacks costs no more than false alarms, whose tests are left out of the search.
"""

from __future__ import annotations

import runpy
from importlib.resources import files

manifest = runpy.run_path(str(files("torchcts") / "templates" / "manifest.complete.py"))["manifest"]
manifest["device_count"] = 2
manifest["hardware"] |= {"device_memory_gb": [16, 16]}  # given, since TorchCTS would call the device to find it out
# Each of the 144 tests of torch.compile builds C++, and takes as long as hundreds of others.
manifest["capabilities"] |= {"multi_device": True, "compile": False}
