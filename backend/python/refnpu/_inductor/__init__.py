"""The npu as a device of Inductor in ``torch.compile``. Imported only when Inductor asks ``torch.npu`` for it.

Inductor asks in `init_backend_registration`, for the four names of `CODEGENS`. The kernels are Inductor's C++ for
CPUs, used as device code: they run only in launches of the driver. Two features are not offered in any version, and
raise `NotImplementedError`: the C++ wrapper (so no AOTInductor) and the FX wrapper. Torch 2.8 cannot compile
``flex_attention``, not even for CPU; 2.13 and later compile it for a fixed list of devices without the npu. Torch 2.8
compiles divisions of integers without a check: a division by zero ends the process with SIGFPE.
"""

from __future__ import annotations

from refnpu._inductor.codegen import NoCppWrapper, NoFXWrapper, NPUScheduling, NPUWrapperCodegen, fuse_as_for_cpu
from refnpu._inductor.devices import register

CODEGENS = {
    "Scheduling": NPUScheduling,
    "PythonWrapperCodegen": NPUWrapperCodegen,
    "CppWrapperCodegen": NoCppWrapper,
    "WrapperFxCodegen": NoFXWrapper,
}

register()
fuse_as_for_cpu()
