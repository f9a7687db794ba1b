"""Models of torchvision, by the names that torchvision.models.list_models() gives."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.ao import quantization
from torch.export import Dim
from torchvision import models

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.zoo.detectors import spread_scores
from torch_onnx_compat.zoo.sample import DEFAULT, SEED, Sample, Size, image_sample
from torch_onnx_compat.zoo.weights import PICTURES, build_with_seed

FRAMES = 16
"""Frames of a clip; MViT takes no other number, S3D needs at least 14."""


def names() -> list[str]:
    """Every registered model, of all tasks."""
    return list(models.list_models())


def family(name: str) -> str:
    """The module of torchvision.models that defines it, e.g. ``resnet`` or ``detection.ssd``."""
    return str(models.get_model_builder(name).__module__.removeprefix("torchvision.models."))


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model; the inputs are those of its task."""
    if name not in models.list_models():
        raise unknown_name("torchvision model", name, models.list_models())
    return _TASKS.get(_task(name), _classification)(name, size, None)


def build_trained(name: str, weights: str, size: Size | None = None) -> Sample:
    """Builds one model with the weights of a name, such as ``IMAGENET1K_V2``, which torchvision downloads."""
    if name not in models.list_models():
        raise unknown_name("torchvision model", name, models.list_models())
    known = models.get_model_weights(name).__members__
    if weights not in known:
        raise unknown_name(f"torchvision weights of {name}", weights, known)
    sample = _TASKS.get(_task(name), _classification)(name, size, weights)
    return replace(sample, metadata=_describe(known[weights]))


def _describe(weights: Any) -> dict[str, str]:
    """What torchvision tells of weights: names of classes, and how pictures are prepared."""
    told = {"weights": str(weights), "preprocessing": " ".join(str(weights.transforms()).split())}
    classes = weights.meta.get("categories")
    return {**told, "names": json.dumps(dict(enumerate(classes)))} if classes else told


def _task(name: str) -> str:
    """The sub-package of torchvision.models that holds the builder; empty for classification."""
    return str(models.get_model_builder(name).__module__.removeprefix("torchvision.models.").rpartition(".")[0])


def _classification(name: str, size: Size | None, weights: str | None) -> Sample:
    return _of_pictures(name, _random(PICTURES, 3, *(size or _trained_size(name))), {0: "batch"}, weights)


def _segmentation(name: str, size: Size | None, weights: str | None) -> Sample:
    images = _random(PICTURES, 3, *(size or _trained_size(name)))
    # Of smaller ones some layers keep a single row of cells, which nobody segments and not every engine resizes.
    axes: dict[int, str | Dim] = {0: "batch", 2: Dim("height", min=32), 3: Dim("width", min=32)}
    return _of_pictures(name, images, axes, weights)


def _video(name: str, size: Size | None, weights: str | None) -> Sample:
    return _of_pictures(name, _random(1, 3, FRAMES, *(size or _trained_size(name))), {0: "batch"}, weights)


def _optical_flow(name: str, size: Size | None, weights: str | None) -> Sample:
    first, second = _random(2, 1, 3, *(size or (128, 128))).tanh()  # in [-1, 1]
    dynamic = {"image1": {0: "batch"}, "image2": {0: "batch"}}
    return Sample(_model(name, (first, second), weights), (first, second), dynamic=dynamic)


def _detection(name: str, size: Size | None, weights: str | None) -> Sample:
    images = [_random(3, *(size or (320, 320))).sigmoid()]  # in [0, 1]
    # The detector resizes its pictures, to 800 pixels by default: small ones to twice their size instead.
    at_size = {"min_size": 2 * min(size), "max_size": 4 * max(size)} if size and "ssd" not in name else {}
    if weights is not None:
        return Sample(models.get_model(name, weights=weights, **at_size).eval(), (images,))
    model = build_with_seed(_builder(name, **at_size), (images,), spread_scores)
    return Sample(model, (images,), note="The class scores are shifted so that a few detections remain.")


def _quantization(name: str, size: Size | None, weights: str | None) -> Sample:
    images = _random(PICTURES, 3, *(size or _trained_size(name)))
    if weights is not None:
        model = models.get_model(name, weights=weights, quantize="FBGEMM" in weights or weights == DEFAULT).eval()
        return image_sample(model, images[:1], {0: "batch"})
    model = build_with_seed(_builder(name), (images,))
    previous = torch.backends.quantized.engine
    engines = torch.backends.quantized.supported_engines
    torch.backends.quantized.engine = "fbgemm" if "fbgemm" in engines else "qnnpack"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch announces the end of this API, and of its dtypes, in several ways
            _quantize(model, images)
    finally:
        torch.backends.quantized.engine = previous
    return replace(image_sample(model, images[:1], {0: "batch"}), note=f"Quantized to int8 from {PICTURES} pictures.")


def _quantize(model: Any, images: Tensor) -> None:
    """As torchvision.models.quantization.utils.quantize_model does, but calibrated on the pictures that it is run on.

    On others activations leave the seven bits that are kept for them, and the sums of fbgemm's kernel saturate where
    the processor has no VNNI: eager torch computes something else than on the next machine.
    """
    model.qconfig = quantization.QConfig(
        activation=quantization.default_observer, weight=quantization.default_per_channel_weight_observer
    )
    model.fuse_model()
    quantization.prepare(model, inplace=True)
    with torch.no_grad():
        model(images)
    quantization.convert(model, inplace=True)
    model.eval()  # what convert puts in is in training mode


def _of_pictures(name: str, images: Tensor, axes: dict[int, str | Dim], weights: str | None) -> Sample:
    return image_sample(_model(name, (images,), weights), images[:1], axes)


def _model(name: str, args: tuple[Tensor, ...], weights: str | None) -> nn.Module:
    if weights is None:
        return build_with_seed(_builder(name), args)
    model: nn.Module = models.get_model(name, weights=weights)
    return model.eval()


_TASKS: dict[str, Callable[[str, Size | None, str | None], Sample]] = {
    "detection": _detection,
    "optical_flow": _optical_flow,
    "quantization": _quantization,
    "segmentation": _segmentation,
    "video": _video,
}
"""By the sub-package of torchvision.models that holds the builder; classification has none."""


def _builder(name: str, **more: Any) -> Callable[[], nn.Module]:
    options: dict[str, Any] = {"weights": None, **more}
    if "weights_backbone" in signature(models.get_model_builder(name)).parameters:
        options["weights_backbone"] = None
    if "googlenet" in name or "inception" in name:
        options["init_weights"] = False  # their own initialisation takes minutes and warns unless it is declined
    return lambda: models.get_model(name, **options)


def _trained_size(name: str) -> Size:
    """Height and width of the smallest pictures that any of its weights takes, which is what the model is built for."""
    presets = [weights.transforms() for weights in models.get_model_weights(name)]
    return min(((sizes := getattr(p, "crop_size", None) or p.resize_size)[0], sizes[-1]) for p in presets)


def _random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(SEED))
