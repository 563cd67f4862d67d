"""Padding, forward and backward."""

from __future__ import annotations

from conformance.ops.family import EXACT, SUMMED, Family, words

FAMILY = Family(
    "padding",
    words("constant_pad_nd pad _pad_circular _pad_enum reflection_pad* replication_pad*"),
    {"tolerance": EXACT, "moves": True},
    but={"*_backward": {"tolerance": SUMMED}},
)
