"""The search for a backend by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import backends
from conformance.backends import BackendNotFound


def test_a_module_and_a_device_will_do() -> None:
    backend = backends.find("torch:cpu")
    assert (backend.name, backend.device, backend.module) == ("torch", "cpu", "torch")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:dev", "module 'no_such_module' cannot be imported"),
        ("torch:nodevice", "knows no device 'nodevice'"),
        (":cpu", "expected module:device, both named"),
        ("torch:", "expected module:device, both named"),
        ("nobody", "unknown backend 'nobody'"),
    ],
)
def test_a_backend_that_is_not_there_gets_one_clear_line(name: str, said: str) -> None:
    with pytest.raises(BackendNotFound, match=said):
        backends.find(name)


def test_a_module_that_breaks_while_it_loads_gets_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "built_for_another.py").write_text("raise RuntimeError('built for torch 2.1')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BackendNotFound, match=r"cannot be imported: RuntimeError: built for torch 2\.1$"):
        backends.find("built_for_another:mydev")


def test_a_near_name_is_offered() -> None:
    with pytest.raises(BackendNotFound, match="near: refnpu"):
        backends.find("refnp")
