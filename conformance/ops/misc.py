"""Ops that no other family claims: queries about tensors, autograd's own ops, and torch's tests of itself."""

from __future__ import annotations

from conformance.ops.family import EXACT, Device, Dtype, Family, T, own

_ITSELF = {"cannot": "torch's test of itself"}

FAMILY = Family(
    "misc",
    (),
    but={
        "_test_autograd_*": _ITSELF,
        "_test_ambiguous_defaults": _ITSELF,
        "_test_check_tensor": _ITSELF,
        "_test_parallel_materialize": _ITSELF,
        "_test_string_default": _ITSELF,
        "_test_warn_in_autograd": _ITSELF,
        "_assert_*": {"tolerance": EXACT},
        "_functional_*": {"tolerance": EXACT},
        "_make_dep_token": {"cannot": "a token of compiled graphs: no argument, and a result without content"},
        "_make_dual*": {"cannot": "a tensor of forward-mode autograd, which lives above the backends"},
        "_unpack_dual": {"cannot": "a tensor of forward-mode autograd, which lives above the backends"},
        "_philox_*": {"cannot": "takes a key made for another device"},
    },
    samples=(
        own("_foobar", "defaults", T((3, 4))),
        own("_test_functorch_fallback", "matrix", T((3, 4)), T((3, 4))),
        own("_test_optional_intlist", "given", T((3,), dtype="int32"), (1, 2, 3), bases="int64"),
        own("_test_optional_intlist", "none", T((3,), dtype="int32"), None, bases="int64"),
        own("_test_optional_filled_intlist", "given", T((2,), dtype="int32"), (1, 2), bases="int64"),
        own("_test_optional_floatlist", "given", T((3,), dtype="float32"), (1.0, 2.0, 3.0)),
        own("_assert_async", "true", T((1,), (1.0,)), bases="float32 int64 bool"),
        own("_assert_async.msg", "true", T((1,), (1.0,)), "must be true", bases="float32 int64 bool"),
        own("_assert_async", "false", T((1,), (0.0,)), bases="float32 int64 bool", raises=True),
        own("_functional_assert_async.msg", "true", T((1,), (1.0,)), "must be true", T((1,)), bases="float32"),
        own("_assert_tensor_metadata", "same", T((3, 4)), None, None, Dtype(), device=Device(), bases="float32 int64"),
        own("_has_same_storage_numel", "same", T((3, 4)), T((3, 4))),
    ),
)
