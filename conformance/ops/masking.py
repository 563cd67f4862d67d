"""Masking: a mask decides which elements are written or kept. The first incident was in this family."""

from __future__ import annotations

from conformance.ops.family import EXACT, Family, Own, T, own, words

ALL_BASES = "float32 int64 bool complex64"
LOWEST = -3.0  # stands for the -inf of a real attention mask in every dtype


def _attention_masks() -> tuple[Own, ...]:
    """Return samples with the mask of a causal decoder as a model builds it.

    The mask [B, T] becomes [B, 1, 1, T], and applies to scores [B, H, T, T].
    """
    scores, causal, padding = T((2, 3, 4, 4)), T((2, 1, 4, 4), "mask", "bool"), T((2, 1, 1, 4), "mask", "bool")
    square, row = T((4, 4), "mask", "bool"), T((2, 4), "mask", "bool")
    samples: list[Own] = []
    for label, mask in (("causal", causal), ("padding", padding), ("square", square)):
        samples += [own(f"{op}.Scalar", label, scores, mask, LOWEST) for op in ("masked_fill", "masked_fill_")]
        lowest = T((), (LOWEST,))
        samples += [own(f"{op}.Tensor", label, scores, mask, lowest) for op in ("masked_fill", "masked_fill_")]
        samples.append(own("where.self", label, mask, scores, lowest))
        samples.append(own("masked_scatter_", label, scores, mask, T((2, 3, 4, 4))))
        samples.append(own("masked_select", label, scores, mask))
    for shape, label in (((2, 1, 4, 4), "mask_of_scores"), ((1, 1, 4, 4), "one_batch"), ((4, 4), "tril")):
        samples.append(own("masked_fill_.Scalar", label, T(shape), T(shape, "mask", "bool"), 0, bases=ALL_BASES))
    samples.append(own("masked_fill_.Scalar", "row", T((2, 4)), row, 1, bases=ALL_BASES))
    samples.append(own("masked_fill_.Scalar", "line", T((7,)), T((7,), "mask", "bool"), 1, bases=ALL_BASES))
    mixed = own(
        "where.self",
        "ints_and_floats",
        T((3, 4), "mask", "bool"),
        T((3, 4)),
        T((), (2.5,), "float32"),
        bases="int64 bool",
    )
    samples.append(mixed)
    samples.append(own("masked_fill_.Scalar", "all_empty", T((0, 4)), T((0, 1), "mask", "bool"), 1))
    return tuple(samples)


FAMILY = Family(
    "masking",
    words("masked_fill masked_scatter masked_scatter_backward masked_select masked_select_backward where"),
    {"tolerance": EXACT, "moves": True},
    # This dtype has no 0: the CPU's shortcut rounds it, but the fill that every other device uses raises.
    but={f"where.{kind}": {"undefined_in": ("float8_e8m0fnu",)} for kind in words("Scalar ScalarSelf ScalarOther")},
    samples=_attention_masks(),
)
