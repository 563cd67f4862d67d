"""Resampling of images: upsampling, grids, affine maps."""

from __future__ import annotations

from conformance.ops.family import Accumulation, Family, T, Tolerance, own, words

_OTHER_DEVICE = {"cannot": "a kernel of one vendor's library; the CPU has none to compare with"}

FAMILY = Family(
    "upsampling",
    words(
        "upsample_* _upsample_* affine_grid_generator affine_grid_generator_backward cudnn_affine_* cudnn_grid_* "
        "grid_sampler* _grid_sampler_2d_cpu_fallback*"
    ),
    {"tolerance": Tolerance(8.0, 4.0)},
    but={
        "cudnn_*": _OTHER_DEVICE,
        "_grid_sampler_2d_cpu_fallback*": {"cpu_alone": True},
        # Three products that may cancel.
        "affine_grid_generator": {"tolerance": Tolerance(8.0, 4.0, Accumulation.FEW)},
    },
    samples=(
        own("affine_grid_generator", "plane", T((2, 2, 3)), (2, 3, 4, 5), False),
        own("_grid_sampler_2d_cpu_fallback", "bilinear", T((1, 2, 3, 4)), T((1, 2, 2, 2), "uniform"), 0, 0, False),
    ),
)
