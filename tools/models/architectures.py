"""The recorded models: public architectures, built from their configurations, and the programs that run them.

Each has the sizes of a public variant and all its layers. Nothing is loaded: there are no weights and no values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import diffusers
import torch
import transformers

Inputs = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Architecture:
    """One model. ``sizes`` are the arguments of its configuration that differ from the package's defaults."""

    title: str
    package: str
    build: Callable[..., Any]
    sizes: Mapping[str, Any]
    inputs: Callable[[], Inputs]  # of both programs, on the current device
    loss: Callable[[Any, Inputs], torch.Tensor]
    labels: tuple[str, ...] = ()  # the inputs that only training has
    infer: Callable[[Any, Inputs], object] = lambda model, inputs: model(**inputs)
    dtype: torch.dtype = torch.float32


def of_transformers(name: str) -> Callable[..., Any]:
    """Return a function that builds a model of transformers from the arguments of its configuration."""

    def build(config: str, **sizes: Any) -> Any:
        return getattr(transformers, name)(getattr(transformers, config)(**sizes))

    return build


def tokens(*shape: int) -> torch.Tensor:
    """Return token ids or labels."""
    return torch.zeros(shape, dtype=torch.int64)


def own_loss(output: Any, _inputs: Inputs) -> torch.Tensor:
    """Return the loss that a model of transformers computes from its labels."""
    loss: torch.Tensor = output.loss
    return loss


def generate(model: Any, inputs: Inputs) -> None:
    """Run a prompt, and then one more token with the cache of keys and values."""
    output = model(**inputs, use_cache=True)
    model(input_ids=output.logits[:, -1:].argmax(-1), past_key_values=output.past_key_values, use_cache=True)


def recognize(model: Any, inputs: Inputs) -> None:
    """Encode a spectrogram, and run the decoder with the start of a text."""
    model(**inputs, decoder_input_ids=tokens(1, 32))


ARCHITECTURES: dict[str, Architecture] = {
    "bert": Architecture(
        "BERT base, a classifier of 2 sequences of 128 tokens", "transformers",
        of_transformers("BertForSequenceClassification"), {"config": "BertConfig"},
        lambda: {"input_ids": tokens(2, 128), "token_type_ids": tokens(2, 128), "labels": tokens(2)}, own_loss,
        ("labels",),
    ),
    "llama": Architecture(
        "Llama with the sizes of TinyLlama 1.1B in bfloat16, 2 sequences of 128 tokens and one more token",
        "transformers",
        of_transformers("LlamaForCausalLM"),
        {
            "config": "LlamaConfig", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
            "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4,
        },
        lambda: {"input_ids": tokens(2, 128), "labels": tokens(2, 128)}, own_loss, ("labels",), generate,
        torch.bfloat16,
    ),
    "qwen2": Architecture(
        "Qwen2 0.5B in bfloat16, 2 sequences of 128 tokens and one more token", "transformers",
        of_transformers("Qwen2ForCausalLM"),
        {
            "config": "Qwen2Config", "vocab_size": 151936, "hidden_size": 896, "intermediate_size": 4864,
            "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True,
        },
        lambda: {"input_ids": tokens(2, 128), "labels": tokens(2, 128)}, own_loss, ("labels",), generate,
        torch.bfloat16,
    ),
    "resnet": Architecture(
        "ResNet-50, 4 images of 224 x 224", "transformers", of_transformers("ResNetForImageClassification"),
        {"config": "ResNetConfig", "num_labels": 1000},
        lambda: {"pixel_values": torch.zeros(4, 3, 224, 224), "labels": tokens(4)}, own_loss, ("labels",),
    ),
    "unet": Architecture(
        "The UNet of DDPM for CIFAR-10, 4 images of 32 x 32", "diffusers", diffusers.UNet2DModel,
        {
            "sample_size": 32, "block_out_channels": (128, 256, 256, 256), "downsample_padding": 0,
            "flip_sin_to_cos": False, "freq_shift": 1, "norm_eps": 1e-6,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D", "DownBlock2D"),
            "up_block_types": ("UpBlock2D", "UpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
        },
        lambda: {"sample": torch.zeros(4, 3, 32, 32), "timestep": tokens(4)},
        lambda output, inputs: torch.nn.functional.mse_loss(output.sample, torch.randn_like(inputs["sample"])),
    ),
    "vit": Architecture(
        "ViT base, 2 images of 224 x 224 in patches of 16 x 16", "transformers",
        of_transformers("ViTForImageClassification"), {"config": "ViTConfig", "num_labels": 1000},
        lambda: {"pixel_values": torch.zeros(2, 3, 224, 224), "labels": tokens(2)}, own_loss, ("labels",),
    ),
    "whisper": Architecture(
        "Whisper tiny, 30 s of sound and 32 tokens", "transformers",
        of_transformers("WhisperForConditionalGeneration"), {"config": "WhisperConfig"},
        lambda: {"input_features": torch.zeros(1, 80, 3000), "labels": tokens(1, 32)}, own_loss, ("labels",), recognize,
    ),
}  # fmt: skip


def programs(architecture: Architecture) -> dict[str, Callable[[], None]]:
    """Build the model, and return its programs by name. They run on the current device."""
    with default_dtype(architecture.dtype):
        model = architecture.build(**architecture.sizes)
    inputs = architecture.inputs()
    given = {name: value for name, value in inputs.items() if name not in architecture.labels}

    def inference() -> None:
        model.eval()
        with torch.no_grad():
            architecture.infer(model, given)

    def training() -> None:
        model.train()
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)  # as torch chooses for a device of a backend
        output = model(**(inputs if architecture.package == "transformers" else given))
        architecture.loss(output, inputs).backward()
        optimizer.step()
        optimizer.zero_grad()

    return {"inference": inference, "training": training}


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make new parameters of this dtype, as a checkpoint in that dtype does."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
