"""What the processes of calls have in common. Importing this does it once, before they are forked.

None of it uses a device or starts a thread, which a forked process would lack.
"""

from __future__ import annotations

from conformance.torch_versions import compilers

compilers.prepare_to_load_packages()
