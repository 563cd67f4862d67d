"""The inventory lists every overload of the dispatcher, with its route."""

from __future__ import annotations

import pytest
import torch

from conformance.inventory import call_of, inventory
from conformance.vocabulary import Route


def test_lists_every_aten_overload_once() -> None:
    names = [o.name for o in inventory("CPU")]
    expected = {n[6:] for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::")}
    assert len(names) == len(set(names))
    assert set(names) == expected


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the counts are those of torch 2.13")
def test_counts_of_torch_2_13() -> None:
    overloads = inventory("CPU")
    assert len(overloads) == 3110
    assert sum(o.route is Route.NATIVE for o in overloads) == 1075
    assert sum(o.is_target for o in overloads) == 1072


def test_routes_of_the_cpu() -> None:
    by_name = {o.name: o for o in inventory("cpu")}
    assert by_name["masked_fill_.Scalar"].route is Route.NATIVE
    assert by_name["masked_fill.Scalar"].route is Route.COMPOSITE
    assert by_name["cudnn_convolution"].route is Route.UNSUPPORTED


def test_a_key_without_kernels_is_served_by_composites_or_not_at_all() -> None:
    by_name = {o.name: o for o in inventory("PrivateUse3")}
    assert by_name["add.Tensor"].route is Route.COMPOSITE
    assert by_name["nonzero"].route is Route.UNSUPPORTED


def test_a_boxed_fallback_serves_what_nothing_else_does() -> None:
    library = torch.library.Library("_", "IMPL", "PrivateUse2")
    library.fallback(lambda op, *args, **kwargs: op(*args, **kwargs))
    by_name = {o.name: o for o in inventory("PrivateUse2")}
    library._destroy()
    assert by_name["nonzero"].route is Route.FALLBACK
    assert by_name["add.Tensor"].route is Route.COMPOSITE


def test_a_kernel_for_autograd_is_called_before_the_boxed_fallback() -> None:
    library = torch.library.Library("_", "IMPL", "PrivateUse2")
    library.fallback(lambda op, *args, **kwargs: op(*args, **kwargs))
    own = torch.library.Library("aten", "IMPL", "AutogradPrivateUse2")
    own.impl("nonzero", lambda x: x)
    by_name = {o.name: o for o in inventory("PrivateUse2")}
    library._destroy()
    own._destroy()
    assert by_name["nonzero"].route is Route.NATIVE
    assert by_name["nonzero_static"].route is Route.FALLBACK


def test_a_kernel_for_autograd_is_called_before_one_for_all_devices() -> None:
    own = torch.library.Library("aten", "IMPL", "AutogradPrivateUse2")
    own.impl("celu", lambda x, alpha=1.0: x)
    own.impl("layer_norm", lambda x, *_: x)
    by_name = {o.name: o for o in inventory("PrivateUse2")}
    own._destroy()
    assert (by_name["celu"].route, by_name["celu_"].route) == (Route.NATIVE, Route.COMPOSITE)
    assert by_name["layer_norm"].route is Route.NATIVE


def test_a_key_without_an_autograd_key_has_routes_too() -> None:
    assert {o.route for o in inventory("Vulkan")} == {Route.COMPOSITE, Route.UNSUPPORTED}


def test_an_unknown_device_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ValueError, match="import the backend first"):
        inventory("nosuchdevice:0")


def test_call_of_finds_named_and_default_overloads() -> None:
    x = torch.tensor([1.0, -2.0])
    assert call_of("neg")(x).tolist() == [-1.0, 2.0]
    assert call_of("masked_fill.Scalar")(x, x < 0, 7).tolist() == [1.0, 7.0]
    with pytest.raises(LookupError, match=r"no overload aten::neg\.nosuch"):
        call_of("neg.nosuch")
