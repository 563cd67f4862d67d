"""Ops on whole lists of tensors."""

from __future__ import annotations

from conformance.ops.family import SUMMED, Accumulation, Family, T, Tolerance, own, words

_LIST = (T((2, 3)), T((4,)), T(()))
_POSITIVE = tuple(T(t.shape, "positive") for t in _LIST)

FAMILY = Family(
    "foreach",
    words("_foreach_* _amp_foreach_non_finite_check_and_unscale _amp_update_scale"),
    {"tolerance": SUMMED, "host": ("scalars",)},
    but={
        "_foreach_norm": {"tolerance": Tolerance(4.0, accumulation=Accumulation.ALL)},
        "_foreach_powsum": {"tolerance": Tolerance(4.0, accumulation=Accumulation.ALL)},
    },
    samples=(
        own("_amp_foreach_non_finite_check_and_unscale_", "finite", _LIST, T((1,), (0.0,), "float32"),
            T((1,), (0.5,), "float32")),
        own("_amp_foreach_non_finite_check_and_unscale_", "infinite", (T((3,), (1.0, float("inf"), 2.0)),),
            T((1,), (0.0,), "float32"), T((1,), (0.5,), "float32")),
        own("_amp_update_scale_", "grows", T((1,), (8.0,), "float32"), T((1,), (1,), "int32"),
            T((1,), (0.0,), "float32"), 2.0, 0.5, 2),
        own("_amp_update_scale_", "backs_off", T((1,), (8.0,), "float32"), T((1,), (1,), "int32"),
            T((1,), (1.0,), "float32"), 2.0, 0.5, 2),
        own("_foreach_pow.ScalarAndTensor", "two_to_the", 2, _LIST),
        own("_foreach_addcmul.Tensor", "scaled", _LIST, _LIST, _POSITIVE, T((3,), (1.0, 2.0, 0.5))),
        own("_foreach_addcmul_.Tensor", "scaled", _LIST, _LIST, _POSITIVE, T((3,), (1.0, 2.0, 0.5))),
        own("_foreach_addcdiv.Tensor", "scaled", _LIST, _LIST, _POSITIVE, T((3,), (1.0, 2.0, 0.5))),
        own("_foreach_addcdiv_.Tensor", "scaled", _LIST, _LIST, _POSITIVE, T((3,), (1.0, 2.0, 0.5))),
        own("_foreach_powsum.Scalar", "squares", _LIST, 2),
    ),
)  # fmt: skip
