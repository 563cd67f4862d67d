"""Finding a backend, and doing without what it does not offer."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import backends
from conformance.backends import BackendNotFound, Capabilities
from conformance.bare_device import BareDevice


def test_a_module_and_a_device_will_do() -> None:
    backend = backends.find("torch:cpu")
    assert (backend.name, backend.device, backend.module) == ("torch", "cpu", "torch")


def test_the_methods_that_a_bare_device_lacks_are_listed() -> None:
    backend = Capabilities(BareDevice("bare", "cpu"), "bare")
    assert set(backend.missing) == set(Capabilities.OPTIONAL) - {"synchronize"}  # torch.cpu has it
    assert backend.route_counters() is None
    assert backend.live_memory() == (0, 0)
    assert backend.verify_memory() == []
    assert backend.environment() == "default"
    backend.synchronize()
    assert backend.unchecked() == (
        "not checked, as the backend's adapter does not offer what is needed: "
        "route (needs route_counters), leak (needs memory_stats), redzone (needs verify_memory)\n"
        "uninitialized is checked with blocks that were filled and freed (fill_fresh would fill all)"
    )
    backend.without(["fill"])
    assert backend.unchecked().endswith("redzone (needs verify_memory), uninitialized (needs fill_fresh)")


def test_a_device_without_an_index_is_the_first_of_its_kind() -> None:
    assert [backends.with_index(d) for d in ("mydev", "mydev:1", "cpu", "meta")] == [
        "mydev:0",
        "mydev:1",
        "cpu",
        "meta",
    ]


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
