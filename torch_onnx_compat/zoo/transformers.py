"""Architectures of transformers in tiny random configurations, by the model types that AutoConfig takes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.zoo.sample import SEED, Sample, Size
from torch_onnx_compat.zoo.transformers_tiny import ARCHITECTURES, Tiny
from torch_onnx_compat.zoo.weights import build_with_seed

PACKAGES = ("transformers",)

BATCH, TOKENS, SAMPLES, FRAMES = 2, 7, 1600, 64
"""Sizes of the example: of text, of sound (samples of a wave, or frames of a spectrogram)."""


def names() -> list[str]:
    """The architectures that have a tiny configuration here."""
    return sorted(ARCHITECTURES)


def family(name: str) -> str:
    """What the model takes: text, text to text, vision, audio, or several."""
    return ARCHITECTURES[name].kind if name in ARCHITECTURES else name


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model; `size` is that of its pictures, which its configuration is made for."""
    if name not in ARCHITECTURES:
        raise unknown_name("transformers model", name, ARCHITECTURES)
    tiny = ARCHITECTURES[name]
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    try:
        config = _config(name, tiny, size)
        inputs = {key: _input(key, tiny, config, size) for key in tiny.inputs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = build_with_seed(lambda: _model(config), (), kwargs=inputs)
    finally:
        logging.set_verbosity(verbosity)
    sample = Sample(model, kwargs={key: value[:1] for key, value in inputs.items()})
    return replace(sample.positional(), dynamic={key: {0: "batch"} for key in inputs})


def _config(name: str, tiny: Tiny, size: Size | None) -> Any:
    options: dict[str, Any] = dict(tiny.config)
    if size is not None and "image_size" in options:
        options["image_size"] = size[0]
    config = AutoConfig.for_model(name, **options)
    for attribute in ("use_cache", "output_attentions", "output_hidden_states"):
        if hasattr(config, attribute):
            setattr(config, attribute, False)
    return config


def _model(config: Any) -> PreTrainedModel:
    model: PreTrainedModel = AutoModel.from_config(config)
    return model


def _input(key: str, tiny: Tiny, config: Any, size: Size | None) -> Tensor:
    generator = torch.Generator().manual_seed(SEED)
    text = getattr(config, "text_config", config)
    side = size or (tiny.side, tiny.side)
    if key in ("input_ids", "decoder_input_ids"):
        return torch.randint(
            3, min(int(getattr(text, "vocab_size", 90)), 90), (BATCH, tiny.tokens), generator=generator
        )
    if key == "attention_mask":
        return torch.zeros(BATCH, *tiny.mask) if tiny.mask else torch.ones(BATCH, tiny.tokens, dtype=torch.int64)
    if key == "pixel_values":
        return torch.randn(BATCH, *tiny.frames, 3, *side, generator=generator)
    shapes: Mapping[str, tuple[int, ...]] = {
        "input_values": (BATCH, *(tiny.sound or (SAMPLES,))),
        "input_features": (BATCH, *(tiny.sound or (80, FRAMES))),
    }
    return torch.randn(shapes[key], generator=generator)
