"""Models of timm, by the names that timm.list_models() gives, with or without a tag such as ``.a1_in1k``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import timm
import torch
from timm.data.config import resolve_data_config
from torch import Tensor

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.zoo.sample import DEFAULT, SEED, Sample, Size, image_sample
from torch_onnx_compat.zoo.weights import PICTURES, build_with_seed

PACKAGES = ("timm",)


def names() -> list[str]:
    """Architectures, without the tags of their weights."""
    return list(timm.list_models())


def family(name: str) -> str:
    """The module of timm that defines the architecture."""
    return str(timm.model_entrypoint(name).__module__.rpartition(".")[2])


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model; an architecture made for one picture size is made for `size` instead."""
    images = _pictures(name, size)
    model = build_with_seed(lambda: timm.create_model(name, pretrained=False, **options(name, size)), (images,))
    return image_sample(model, images[:1], {0: "batch"})


def build_trained(name: str, weights: str, size: Size | None = None) -> Sample:
    """Builds one model with the weights of a tag, such as ``a1_in1k``, which timm downloads."""
    if weights != DEFAULT:
        name = f"{name.partition('.')[0]}.{weights}"
        tags = timm.list_pretrained(f"{name.partition('.')[0]}.*")
        if name not in tags:
            raise unknown_name("timm weights", weights, (tag.partition(".")[2] for tag in tags))
    images = _pictures(name, size)
    model = timm.create_model(name, pretrained=True, **options(name, size)).eval()
    sample = image_sample(model, images[:1], {0: "batch"})
    return replace(sample, metadata={"preprocessing": json.dumps(resolve_data_config(model=model))})


def _pictures(name: str, size: Size | None) -> Tensor:
    """Pictures of a model's size.

    Raises:
        CompatError: There is no such model.
    """
    if not timm.is_model(name):
        raise unknown_name("timm model", name, names())
    config = timm.get_pretrained_cfg(name)
    channels, *default = config.input_size if config is not None else (3, 224, 224)
    return torch.randn(PICTURES, channels, *(size or default), generator=torch.Generator().manual_seed(SEED))


def options(name: str, size: Size | None) -> dict[str, Any]:
    """What timm.create_model is to be told of a picture size."""
    config = timm.get_pretrained_cfg(name)
    return {"img_size": size} if size and config is not None and config.fixed_input_size else {}
