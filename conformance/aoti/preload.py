"""The preparation that all processes of calls share. Importing this module does it once, before they are forked.

The preparation uses no device and starts no thread, because a forked process would have neither.
"""

from __future__ import annotations

from conformance.torch_versions import compilers

compilers.prepare_to_load_packages()
