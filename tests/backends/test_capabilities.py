"""Capabilities that a backend lacks, and how the suite works without them."""

from __future__ import annotations

from conformance import backends
from conformance.backends import Capabilities
from conformance.bare_device import BareDevice


def test_the_methods_that_a_bare_device_lacks_are_listed() -> None:
    backend = Capabilities(BareDevice("bare", "cpu"), "bare")
    assert set(backend.missing) == set(Capabilities.OPTIONAL) - {"synchronize"}  # torch.cpu has this method
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
