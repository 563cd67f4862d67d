"""The table of registrations: the purpose of each, its probe, and the lines that make it, by torch version.

``{kind}`` stands for the device's name, ``{module}`` for the backend's Python module, and ``{each}`` for the lines of
the functions or kernels that are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from packaging.version import Version

from conformance.doctor import probes
from conformance.doctor.probes import Probe


class Need(str, Enum):
    """The importance of a registration."""

    REQUIRED = "required"  # hardly any program works without it
    ADVISED = "advised"  # some programs fail or are silently wrong without it
    OPTIONAL = "optional"


@dataclass(frozen=True, slots=True)
class Registration:
    """One registration. ``lines``: (the first torch version that takes them, the lines), the oldest version first."""

    name: str
    probe: Probe
    need: Need
    purpose: str
    lines: tuple[tuple[str, str], ...]
    each: Mapping[str, str] = field(default_factory=dict)  # the line of each function or kernel

    @property
    def since(self) -> Version:
        """The first torch version that has this registration."""
        return Version(self.lines[0][0])

    def lines_for(self, torch: Version, kind: str, module: str, missing: Collection[str] = ()) -> str:
        """Return the lines to add for a torch version: for the names in ``missing``, or for all if it is empty."""
        text = [text for since, text in self.lines if Version(since) <= torch][-1]
        each = "\n".join(line for name, line in self.each.items() if name in missing or not missing)
        return text.replace("{each}", each).replace("{kind}", kind).replace("{module}", module)


def _allocator(base: str) -> str:
    """Return the lines of an allocator with this base class."""
    return (
        f"static MyAllocator allocator;  // C++, a {base}\n"
        "REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);"
    )


def _hooks(*methods: str) -> str:
    """Return the lines of hooks with these methods, which return true."""
    lines = "".join(f"  bool {method} const override {{ return true; }}\n" for method in methods)
    return (
        f"struct MyHooks : at::PrivateUse1HooksInterface {{  // C++\n{lines}}};\n"
        "at::RegisterPrivateUse1HooksInterface(new MyHooks);"
    )


def _functions(names: Iterable[str]) -> dict[str, str]:
    """Return the line of each function of the device's module."""
    return {name: f"def {name}({_ARGUMENTS.get(name, '')}): {_BODIES.get(name, '...')}" for name in names}


def _kernels(names: Iterable[str]) -> dict[str, str]:
    """Return the line that registers each kernel."""
    return {name: f'  m.impl("{name}", &{name.replace(".", "_")});' for name in names}


_ARGUMENTS = {
    "set_device": "device", "synchronize": "device=None", "manual_seed_all": "seed",
    "get_rng_state": "device='{kind}'", "set_rng_state": "state, device='{kind}'",
}  # fmt: skip
_BODIES = {"_is_in_bad_fork": "return False"}

REGISTRATIONS = (
    Registration(
        "device name", probes.device_name, Need.REQUIRED, "the device is called {kind} and not privateuseone",
        (("2.0", 'torch.utils.rename_privateuse1_backend("{kind}")  # Python, before any device is made'),),
    ),
    Registration(
        "device module", probes.device_module, Need.REQUIRED,
        "torch.{kind}, which torch asks for streams, seeds, memory and AMP",
        (("2.0", 'torch._register_device_module("{kind}", {module}.{kind})  # Python'),),
    ),
    Registration(
        "minimal ops", probes.minimal_ops, Need.REQUIRED, "making, viewing and copying tensors",
        (("2.0", "TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {  // C++\n{each}\n}"),),
        _kernels(probes.MINIMAL),
    ),
    Registration(
        "allocator", probes.allocator, Need.REQUIRED, "torch.UntypedStorage, resize_, torch.load",
        (
            ("2.0", _allocator("c10::Allocator")),
            ("2.9", _allocator("c10::DeviceAllocator")),
        ),
    ),
    Registration(
        "guard", probes.guard, Need.REQUIRED, "autograd, streams, events, several devices",
        (("2.0", ("struct MyGuard final : c10::impl::DeviceGuardImplInterface { ... };  // C++\n"
          "C10_REGISTER_GUARD_IMPL(PrivateUse1, MyGuard);")),),
    ),
    Registration(
        "hooks", probes.accelerator, Need.REQUIRED, "torch.accelerator, pinned memory, resizing of storages",
        (
            ("2.6", _hooks("hasPrimaryContext(c10::DeviceIndex)")),
            ("2.7", _hooks("isBuilt()", "isAvailable()", "hasPrimaryContext(c10::DeviceIndex)")),
        ),
    ),
    Registration(
        "generator", probes.generator, Need.REQUIRED, "random ops, torch.Generator, dropout",
        (
            ("2.0", "REGISTER_GENERATOR_PRIVATEUSE1(make_generator);  // C++"),
            ("2.7", ("// C++, in the hooks:\nat::Generator getNewGenerator(c10::DeviceIndex) const override;\n"
             "const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override;")),
        ),
    ),
    Registration(
        "seeding", probes.seeding, Need.ADVISED,
        "torch.manual_seed, fork_rng, checkpoint: without it they leave the device's generators alone",
        (("2.0", "# Python, in torch.{kind}:\n{each}"),),
        _functions(probes.SEEDING_FUNCTIONS),
    ),
    Registration(
        "_initialized", probes.initialized, Need.ADVISED,
        "torch.utils.checkpoint keeps the random state only if it is True: gradients with dropout are wrong without it",
        (("2.1", "# Python, in torch.{kind}:\n_initialized = False  # True after the first use of the device"),),
    ),
    Registration(
        "module functions", probes.module_functions, Need.ADVISED, "programs and torch itself ask them of any device",
        (("2.0", "# Python, in torch.{kind}:\n{each}"),),
        _functions(probes.MODULE_FUNCTIONS),
    ),
    Registration(
        "names for methods", probes.methods, Need.ADVISED,
        "tensor.{kind}(), tensor.is_{kind}, module.{kind}(), storage.{kind}()",
        (("2.1", "torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)  # Python"),),
    ),
    Registration(
        "serialization", probes.serialization, Need.ADVISED, "torch.save and torch.load of tensors on the device",
        (("2.1", ("torch.serialization.register_package(100, tag_of_storage, storage_from_tag)  # Python\n"
          "// C++, for a tensor's metadata of your own:\n"
          "torch::jit::TensorBackendMetaRegistry(c10::DeviceType::PrivateUse1, &get_meta, &set_meta);")),),
    ),
    Registration(
        "AMP", probes.amp, Need.ADVISED, 'torch.autocast("{kind}")',
        (("2.0", ("# Python, in torch.{kind}:\ndef get_amp_supported_dtype(): return [torch.float16, torch.bfloat16]\n"
          "// C++:\nTORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {\n"
          "  m.fallback(torch::CppFunction::makeFallthrough());\n}")),),
    ),
    Registration(
        "autoload", probes.autoload, Need.ADVISED,
        "`import torch` loads the backend, also in processes that torch starts",
        (("2.5", '# pyproject.toml\n[project.entry-points."torch.backends"]\n{module} = "{module}:_autoload"'),),
    ),
    Registration(
        "second derivatives", probes.second_derivatives, Need.ADVISED,
        "ops of the backend's own: a gradient of a gradient that is not offered raises, and does not lack terms",
        (("2.0", ("TORCH_LIBRARY_IMPL({module}, AutogradPrivateUse1, m) {  // C++\n"
          '  m.impl("my_op_backward", torch::autograd::autogradNotImplementedFallback());\n}')),),
    ),
    Registration(
        "fallback to CPU", probes.fallback, Need.OPTIONAL, "ops that have no kernel yet",
        (("2.0", ("TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {  // C++\n"
          "  m.fallback(torch::CppFunction::makeFromBoxedFunction<&at::native::cpu_fallback>());\n}")),),
    ),
    Registration(
        "device allocator", probes.device_allocator, Need.OPTIONAL, "memory statistics in torch.accelerator",
        (("2.9", ("// C++: derive the allocator from c10::DeviceAllocator and implement getDeviceStats,\n"
          "// resetPeakStats, emptyCache")),),
    ),
    Registration(
        "pinned memory", probes.pinned_memory, Need.OPTIONAL, "tensor.pin_memory(), DataLoader(pin_memory=True)",
        (
            ("2.0", ("// C++, in the hooks:\nbool isPinnedPtr(const void*) const override;\n"
             "c10::Allocator* getPinnedMemoryAllocator() const override;")),
            ("2.8", ("// C++, besides the hooks' isPinnedPtr:\n"
             "REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, &host_allocator);")),
        ),
    ),
)  # fmt: skip
