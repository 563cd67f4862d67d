"""``python -m tools.models``: record the calls of the models into conformance/models/data."""

from __future__ import annotations

import argparse
import importlib.metadata
from pathlib import Path
from typing import Any

import torch

from conformance.calls.recording import Recorder, kind_of
from conformance.models import file
from conformance.models.model import ModelCall, Recording
from tools.models import readme
from tools.models.architectures import ARCHITECTURES, Architecture, programs
from tools.models.below import Finder

PROGRAMS = ("inference", "training")
_META = torch.device("meta")


def main(arguments: list[str] | None = None) -> None:
    """Record all models, and write their files and the README beside them."""
    parser = argparse.ArgumentParser(prog="models", description=__doc__)
    parser.add_argument("--out", type=Path, default=file.DATA, help="a directory")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    finder, made = Finder(), []
    for name, architecture in ARCHITECTURES.items():
        made.append(record(name, architecture, finder))
        path = file.write(out, made[-1], PROGRAMS)
        print(f"{path.name}: {made[-1].count} calls, {len(made[-1].calls)} kinds, {path.stat().st_size} bytes")
    print(f"{file.write_below(out, finder.found).stat().st_size} bytes of {len(finder.found)} kernels for all devices")
    (out / "README.md").write_text(readme.text(made), encoding="utf-8")


def record(name: str, architecture: Architecture, finder: Finder) -> Recording:
    """Run the programs of a model on meta, and return their calls."""
    torch.manual_seed(0)
    kinds: dict[object, tuple[Any, int, dict[str, int]]] = {}
    lost: dict[str, str] = {}
    with _META:
        for program, run in programs(architecture).items():
            recorder = Recorder(_META, with_bytes=False)
            with finder, recorder:
                run()
            lost |= recorder.lost
            for call, count, made in zip(recorder.calls, recorder.counts, recorder.made, strict=True):
                kinds.setdefault(kind_of(call), (call.case, made, {}))[2][program] = count
    calls = [_call(case, made, counts) for case, made, counts in kinds.values()]
    return Recording(name, architecture.title, tuple(calls), _facts(architecture, lost))


def _call(case: Any, made: int, counts: dict[str, int]) -> ModelCall:
    sample = case.sample
    return ModelCall(sample, case.placements, case.shared, made, counts)


def _facts(architecture: Architecture, lost: dict[str, str]) -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in dict.fromkeys(("torch", architecture.package))}
    sizes = {name: list(v) if isinstance(v, tuple) else v for name, v in architecture.sizes.items()}
    model = {"config": sizes} if sizes else {}
    return {
        "versions": {name: version.partition("+")[0] for name, version in versions.items()}, **model,
        "dtype": str(architecture.dtype).removeprefix("torch."), "lost": lost,
    }  # fmt: skip


if __name__ == "__main__":
    main()
