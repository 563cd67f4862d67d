"""The process that runs a package: it passes the inputs with their strides and offsets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from conformance import backends
from conformance.aoti import tracing
from conformance.aoti.progress import Progress
from conformance.aoti.spec import Model
from conformance.torch_versions import compilers


def test_the_package_gets_inputs_that_lie_as_the_given_ones_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = torch.arange(24.0).view(4, 6)[1:, ::2]
    seen: list[torch.Tensor] = []

    def package(x: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return x.add_(1)

    class Added(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    monkeypatch.setattr(compilers, "load_package", lambda _: package)
    (tmp_path / "model.pt2").touch()
    progress, told = Progress(tmp_path / "facts.json"), dict[str, Any]()
    monkeypatch.setattr(progress, "tell", told.update)
    backend, places = backends.find("torch:cpu"), (tmp_path / "model.pt2", tmp_path / "expected.pt")
    tracing._run(backend, Model(Added(), (given,)), [given], *places, progress)  # noqa: SLF001
    (x,) = seen
    assert (x.stride(), x.storage_offset()) == (given.stride(), given.storage_offset())
    assert told["difference"] == ""
    assert given[0, 0] == 6
