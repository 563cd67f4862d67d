"""torch_openreg, PyTorch's own example of a PrivateUse1 backend."""

from __future__ import annotations

from conformance.adapters.model import ShippedAdapter


class Adapter(ShippedAdapter):
    """The first of torch_openreg's two simulated devices."""

    NAME, DEVICE, MODULE = "torch_openreg", "openreg:0", "torch_openreg"
    INSTALL = (
        "build it from PyTorch's repository: `pip install --no-build-isolation "
        "test/cpp_extensions/open_registration_extension/torch_openreg`"
    )
