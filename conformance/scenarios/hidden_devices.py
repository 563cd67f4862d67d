"""A process whose devices are hidden, which stands for a machine without devices.

A build of torch with a backend is also installed where there is no device: on build machines, on laptops.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch

from conformance.scenarios.importing import FACTS, facts_of
from conformance.scenarios.model import HIDDEN_BY, Broken, NotOffered, Results, scenario
from conformance.scenarios.new_processes import loaded_by
from conformance.torch_versions import accelerator_of

#: Expressions on CPU, whose values must be those without the module.
ON_CPU = {
    **FACTS,
    "reseeded": "(torch.manual_seed(5), torch.rand(3).tolist())[1]",
    "batches_pinned": "batches(pin_memory=True)",
    "autocast_region": "seen([torch.autocast('cpu', dtype=torch.bfloat16)(torch.mm)(x, x.t())])",
    "is_pinned": "x.is_pinned()",
    "loaded_on_cpu": "seen([torch.load(saved(x), map_location='cpu')])",
}
#: Expressions about devices, and the values that they must have.
ANSWERS = {
    "is_available": ("imported.is_available()", "False"),
    "device_count": ("imported.device_count()", "0"),
    "accelerator": ("torch.accelerator.is_available(), torch.accelerator.device_count()", "(False, 0)"),
    "file_of_the_device": ("torch.load({file!r}, map_location='cpu').tolist()", "[0, 1, 2]"),
}
#: Expressions that need a device, and must raise an error.
REFUSED = {
    "tensor": "torch.ones(1, device={kind!r})",
    "first_device": "torch.zeros(2, device='{kind}:0')",
    "draw": "torch.rand(2, device={kind!r})",
    "moved": "x.to({kind!r})",
    "module_moved": "copy.deepcopy(layer).to({kind!r})",
    "loaded_there": "torch.load(saved(x), map_location={kind!r})",
    "file_of_the_device_as_it_is": "torch.load({file!r})",
}
#: Expressions that may raise an error or not. The process must survive them.
SURVIVED = {
    "stream": "torch.Stream({kind!r}).query()",
    "event": "torch.Event({kind!r}).record()",
    "generator": "torch.Generator({kind!r}).manual_seed(3)",
    "no_elements": "torch.empty(0, device={kind!r})",
    "current_device": "torch.accelerator.current_device_index()",
    "current_stream": "torch.accelerator.current_stream()",
    "set_device": "torch.accelerator.set_device_index(0)",
    "synchronize": "torch.accelerator.synchronize()",
    "pinned": "x.pin_memory()",
    "free_memory": "imported.mem_get_info()",
    "memory_in_use": "imported.memory_allocated()",
    "release_of_memory": "imported.empty_cache()",
    "seeds": "imported.manual_seed_all(3)",
    "state": "imported.get_rng_state()",
    "autocast": "torch.autocast({kind!r})",
    "fork": "os.waitpid(os.fork() or os._exit(0), 0)",
}


#: Expressions on CPU, evaluated after all others.
AFTERWARDS = {"gradient_afterwards": "gradient()", "workers_afterwards": "batches(num_workers=1)"}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def programs_without_a_device(device: str) -> Results:
    """A device's module can be imported where there is no device: it says so, refuses work, and leaves CPU alone."""
    kind = torch.device(device).type
    if kind == "cpu":
        names = [*ON_CPU, *AFTERWARDS, "output", *ANSWERS, *REFUSED, "survived"]
        return {name: torch.tensor(True) for name in names}
    variables = HIDDEN_BY.get(kind)
    if not variables:
        raise NotOffered("variables that hide the devices from a process (hidden_by)")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "of_the_device.pt")
        torch.save(torch.arange(3, device=device), file)
        return facts_without_a_device(loaded_by(device), kind, file, variables) | _lacking(kind)


def facts_without_a_device(module: str, kind: str, file: str, variables: Mapping[str, str]) -> Results:
    """Return for each fact whether it is right in a process with these variables in its environment."""
    answers = {name: code.format(file=file) for name, (code, _) in ANSWERS.items()}
    refused = {name: f"refused(lambda: {code.format(kind=kind, file=file)})" for name, code in REFUSED.items()}
    survived = {f"survived_{name}": code.format(kind=kind) for name, code in SURVIVED.items()}
    asked = {**ON_CPU, **answers, **refused, **survived, **AFTERWARDS}
    try:
        found = facts_of(module, asked, variables)
    except NotOffered as e:
        raise AssertionError(f"a process without a device cannot import {module}") from e
    wanted = facts_of("torch", {**ON_CPU, **AFTERWARDS})
    wanted |= {name: answer for name, (_, answer) in ANSWERS.items()} | dict.fromkeys(REFUSED, repr("refused"))
    begin = f"# {' '.join(f'{name}={value!r}' for name, value in variables.items())}", f"import {module}"

    def judged(name: str, fact: str) -> torch.Tensor | Broken:
        line = f"{asked.get(name, 'sys.stdout')}  # {found[name]}, expected {fact}"
        return torch.tensor(True) if found[name] == fact else Broken((*begin, line), 2, None)

    return {name: judged(name, fact) for name, fact in wanted.items()} | {"survived": torch.tensor(True)}


def _lacking(kind: str) -> Results:
    """Return NotOffered for each fact about a function that is missing even where the device exists."""
    module = torch.get_device_module(torch.device(kind))
    names = [name for name in ("is_available", "device_count") if not callable(getattr(module, name, None))]
    found: Results = {name: NotOffered(f"{module.__name__}.{name}") for name in names}
    if accelerator_of(kind) is None:
        found["accelerator"] = NotOffered("a device that is torch's accelerator")
    return found
