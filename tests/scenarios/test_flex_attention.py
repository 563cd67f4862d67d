"""Flex attention: the programs compute what they say, and a device that torch itself refuses is no failure."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import flex_attention as torchs
from torch.nn.functional import scaled_dot_product_attention

from conformance.scenarios import compiling, flex_attention
from conformance.scenarios.model import NotOffered


def refusing(message: str) -> Any:
    def refuse(*given: torch.Tensor, **named: Any) -> torch.Tensor:
        raise ValueError(message)

    return refuse


def test_the_causal_program_is_attention_with_a_causal_mask() -> None:
    found = flex_attention.causal_attention("cpu")
    expected = scaled_dot_product_attention(*flex_attention._causal("cpu")[0], is_causal=True)  # noqa: SLF001
    assert set(found) == {"eager", "compiled for CPU", "compiled for device"}
    assert all(torch.allclose(t, expected, atol=1e-5) for t in found.values() if isinstance(t, torch.Tensor))


def test_the_bias_of_a_head_depends_on_the_distance() -> None:
    (q, k, v), _ = flex_attention._biased("cpu")  # noqa: SLF001
    place = torch.arange(flex_attention.LENGTH)
    bias = torch.tensor([0.5, 0.25, 0.125, 0.0625])[:, None, None] * (place[None] - place[:, None])
    expected = scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True)
    found = flex_attention.biased_attention("cpu")["eager"]
    assert isinstance(found, torch.Tensor)
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_device_that_torch_refuses_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchs, "flex_attention", refusing("FlexAttention is only supported on CUDA and CPU devices."))
    refused = flex_attention._attention(flex_attention._causal, "cpu")  # noqa: SLF001
    assert isinstance(refused, NotOffered)
    assert "only supported on CUDA" in str(refused)
    assert isinstance(flex_attention._compiled(flex_attention._causal, "cpu"), NotOffered)  # noqa: SLF001


def test_another_error_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchs, "flex_attention", refusing("expected four dimensions"))
    with pytest.raises(ValueError, match="four dimensions"):
        flex_attention._attention(flex_attention._causal, "cpu")  # noqa: SLF001


def test_code_that_does_not_compile_is_a_failure_that_names_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_ = torch.compile  # the call itself uses it too

    def broken(call: Any, **options: Any) -> Any:
        return refusing("no such intrinsic") if call is torchs.flex_attention else compile_(call, **options)

    monkeypatch.setattr(torch, "compile", broken)
    monkeypatch.setattr(compiling, "inductor_lacks", lambda: "")
    monkeypatch.setattr(compiling, "inductor_knows", lambda _: True)  # torch's cached list lacks the device
    with pytest.raises(RuntimeError, match=r"flex_attention compiled for cpu: ValueError: no such intrinsic \(.+\)"):
        flex_attention._compiled(flex_attention._causal, "cpu")  # noqa: SLF001
