"""Effects of importing a device's module on Python, and on torch's work on CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch

from conformance.scenarios import patience
from conformance.scenarios.model import Broken, NotOffered, Results, scenario
from conformance.scenarios.new_processes import loaded_by

SECONDS = 120.0  # limit for a process, which spends most of it importing torch

_ASK = """
import copy, gc, importlib, io, json, locale, logging, os, pathlib, pickle, pickletools, random, signal, sys, warnings
import zipfile
import torch, torch.utils.data
file, module, facts = sys.argv[1:]
random.seed(3)
torch.manual_seed(3)
random_before = random.getstate()
try:
    imported = importlib.import_module(module)
except ImportError:
    sys.exit()  # without facts


def shown(*categories):
    with warnings.catch_warnings(record=True) as found:
        for category in categories:
            warnings.warn(f"one {category.__name__}", category)
    return [one.category.__name__ for one in found]


def interrupted():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return True
    return False


def gradient():
    y = x.clone().requires_grad_()
    (y.t() @ y).sum().backward()
    return y.grad.tolist()


def named(pickled):
    return sorted({arg for op, arg, _ in pickletools.genops(pickled) if op.name == "GLOBAL"})


def saved(value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def batches(**how):
    data = torch.utils.data.TensorDataset(torch.arange(8))
    loader = torch.utils.data.DataLoader(data, 3, shuffle=True, generator=torch.Generator().manual_seed(1), **how)
    return [batch[0].tolist() for batch in loader]


def seen(tensors):
    return [(type(t).__name__, t.dtype, t.device, t.stride(), t.requires_grad, t.tolist()) for t in tensors]


def fact(code):
    try:
        return repr(eval(code))
    except Exception as e:
        return f"{type(e).__name__}: {next(iter(str(e).splitlines()), '')}"


def refused(call):
    try:
        return f"no error: {type(call()).__name__}"
    except (RuntimeError, AssertionError, ValueError) as e:
        return "refused" if str(e) else f"{type(e).__name__} without a message"


def kind_of_error(call):
    try:
        call()
    except Exception as e:
        return type(e).__name__


x = torch.arange(6.0).view(2, 3)
values = [x, x.t(), x.half(), x.to(torch.complex64), torch.nn.Parameter(x), x[:0], x > 2, x[:, 1], x.double()]
layer = torch.nn.Linear(3, 2)
found = {}
for name, code in json.loads(facts).items():
    pathlib.Path(file + ".at").write_text(name)
    found[name] = fact(code)
pathlib.Path(file).write_text(json.dumps(found))
"""

#: Facts about a process, as Python expressions. The draws come first, since other facts may draw.
FACTS = {
    "random": "random.getstate() == random_before",
    "seed": "torch.initial_seed()",
    "draws": "torch.rand(5).tolist()",
    "default_dtype": "torch.get_default_dtype()",
    "default_device": "torch.get_default_device()",
    "grad_mode": "torch.is_grad_enabled(), torch.is_inference_mode_enabled()",
    "determinism": "torch.are_deterministic_algorithms_enabled()",
    "precision": "torch.get_float32_matmul_precision()",
    "anomaly_mode": "torch.is_anomaly_enabled()",
    "autocast": "torch.is_autocast_enabled('cpu'), torch.get_autocast_dtype('cpu')",
    "text": "torch.tensor([1 / 3, 1e8, float('nan')])",
    "subnormals": "2.0**-1070 * 0.5 > 0, (torch.full((9,), 2.0**-126) * 0.5).tolist()",
    "warnings": "shown(UserWarning, RuntimeWarning, FutureWarning, DeprecationWarning)",
    "logging": "logging.root.level, logging.root.manager.disable, len(logging.root.handlers)",
    "interrupt": "interrupted()",
    "folder": "os.getcwd()",
    "umask": "os.umask(0o22)",
    "collector": "gc.isenabled()",
    "decimal_point": "locale.localeconv()['decimal_point']",
    "names_in_a_pickle": "named(pickle.dumps(values, 0))",
    "names_in_a_pickled_module": "named(pickle.dumps(layer, 0))",
    "names_in_a_file": "named(zipfile.ZipFile(saved(values)).read('archive/data.pkl'))",
    "pickled": "seen(pickle.loads(pickle.dumps(values)))",
    "loaded": "seen(torch.load(saved(values)))",
    "loaded_whole": "torch.load(saved(layer), weights_only=False)",
    "loaded_elsewhere": "torch.load(saved(x), map_location='meta')",
    "copied": "seen(copy.deepcopy(values))",
    "module": "torch.nn.Sequential(copy.deepcopy(layer), torch.nn.ReLU()).to(torch.float64)",
    "module_moved": "copy.deepcopy(layer).to('meta').weight",
    "state": "list(layer.state_dict()), layer.load_state_dict(layer.state_dict())",
    "batches": "batches()",
    "batches_of_workers": "batches(num_workers=2)",
    "gradient": "gradient()",
    "scaler": "torch.amp.GradScaler('cpu').scale(torch.ones(1))",
    "error_of_shapes": "torch.ones(3) + torch.ones(4)",
    "error_of_an_index": "x[9]",
    "error_of_a_view": "x.t().view(6)",
    "error_of_a_dimension": "x.sum(5)",
    "error_of_an_array": "torch.ones(1, requires_grad=True).numpy()",
    "unsafe": "kind_of_error(lambda: torch.load(saved(layer)))",
    "unknown_device": "kind_of_error(lambda: torch.ones(1, device='nothing'))",
    "unknown_location": "kind_of_error(lambda: torch.load(saved(x), map_location='nothing'))",
    "unknown_name": "kind_of_error(lambda: torch.nothing), kind_of_error(lambda: x.nothing)",
    "wrong_type": "kind_of_error(lambda: torch.add(x, 'a'))",
    "too_large": "kind_of_error(lambda: torch.empty(1 << 62))",
}


@scenario(exact=True, slow=True, area="devices", accelerators=True)
def importing_changes_nothing_else(device: str) -> Results:
    """Importing a device's module changes no setting, draw, file or error of a program that uses CPU alone."""
    if torch.device(device).type == "cpu":
        return {name: torch.tensor(True) for name in [*FACTS, "output"]}
    module = loaded_by(device)
    found, wanted = facts_of(module), facts_of("torch")
    return {name: _alike(module, name, found[name], fact) for name, fact in wanted.items()}


def _alike(module: str, name: str, found: str, wanted: str) -> torch.Tensor | Broken:
    if found == wanted:
        return torch.tensor(True)
    line = f"{FACTS.get(name, 'sys.stdout')}  # {found}, without the import {wanted}"
    return Broken((f"import {module}", line), 1, None)


def facts_of(module: str, facts: dict[str, str] = FACTS, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Import a module in a new process. Return the values or errors of the facts there, and the output of the process.

    The process has the environment of this one, updated with ``variables``. Raises NotOffered if it cannot import the
    module, and AssertionError if it dies or does not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts"
        command = [sys.executable, "-c", _ASK, str(file), module, json.dumps(facts)]
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **(variables or {})}
        try:
            code, output, errors = patience.run(command, SECONDS, environment)
        except subprocess.TimeoutExpired as e:
            at = _last_asked(file)
            raise AssertionError(f"a process that imports {module} has not ended within {SECONDS:.0f} s{at}") from e
        if code:
            last = (errors.strip().splitlines() or [""])[-1]
            at = _last_asked(file)
            raise AssertionError(f"a process that imports {module} ended with {code}{at}: {last}")
        if not file.exists():
            raise NotOffered(f"the import of {module} in a new process")
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
        return found | {"output": repr(output)}


def _last_asked(file: Path) -> str:
    """Return words that name the fact which a process evaluated last, "" if it evaluated none."""
    asked = Path(f"{file}.at")
    return f", asked for {asked.read_text(encoding='utf-8')}" if asked.exists() else ""
