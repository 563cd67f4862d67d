"""Integer arguments that do not fit in 32 bits."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from conformance.corpus.model import Sample
from conformance.corpus.vary.extremes import DIMENSIONS, INTEGERS, STEPS, generate
from tests.generated import failing, made_by


def made(overload: str) -> tuple[Sample, ...]:
    return made_by(generate, overload)


def values(samples: Iterable[Sample], name: str) -> set[str]:
    words = [s.name.partition(f".{name}=")[2] for s in samples]
    return {word for word in words if word}


def in_32_bits(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def test_an_integer_is_at_the_limits_of_32_bits_and_far_beyond() -> None:
    found = made("tril")
    assert values(found, "diagonal") == {str(n) for n in INTEGERS}
    assert not any(s.raises for s in found)


def test_no_product_of_a_step_and_a_stride_takes_more_than_64_bits() -> None:
    found = made("slice_copy.Tensor")
    assert values(found, "step") == {str(n) for n in STEPS}
    assert str(2**62) in values(found, "start")


def test_a_dimension_that_is_right_in_32_bits_is_refused() -> None:
    refused = [s for s in made("cumsum") if s.raises]
    assert values(refused, "dim") == {str(n) for n in DIMENSIONS}


def test_what_torch_refuses_without_memory_is_refused() -> None:
    assert any(s.raises for s in made("topk") if f"k={2**32 + 1}" in s.name)


def test_a_list_has_the_opposite_signs_and_a_large_first_element() -> None:
    shifts = values(made("roll"), "shifts")
    assert {"-5", str(2**32 + 1)} <= shifts
    assert any(word.count("x-") for word in shifts)


def test_dtypes_sizes_and_members_of_enumerations_stay() -> None:
    assert not any("dtype=" in s.name for s in made("sum.dim_IntList"))
    assert not values(made("view"), "size")
    assert not any("mode=" in s.name for s in made("grid_sampler_2d"))


def test_a_third_sample_is_varied_only_for_its_list_of_integers() -> None:
    assert len({s.name.rpartition(".dim=")[0] for s in made("cumsum")}) == 2
    assert any(word.count("x") > 1 for word in values(made("roll"), "shifts"))


def test_a_factory_has_none() -> None:
    assert not made("tril_indices")


def test_a_diagonal_that_a_kernel_keeps_in_32_bits_is_found() -> None:
    def wrong(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
        return torch.tril(x, in_32_bits(diagonal))

    found = failing(torch.tril, wrong, made("tril"))
    assert any(name.endswith(f"diagonal={2**32 + 1}") for name in found)
    assert not failing(torch.tril, torch.tril, made("tril"))


def test_a_composite_has_none() -> None:
    assert not made("chunk")
