"""timm's models: named, seeded, at their own picture size and at another."""

import pytest
import torch

from torch_onnx_compat import CompatError
from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo import timm as zoo


def test_names() -> None:
    assert {"resnet18", "vit_tiny_patch16_224"} <= set(zoo.names())


@pytest.mark.parametrize("name", ["resnet10t", "resnet10t.c3_in1k", "convnext_atto", "mixer_s32_224"])
def test_outputs_depend_on_the_picture(name: str) -> None:
    sample = load(f"timm:{name}")
    (image,) = sample.args
    with torch.no_grad():
        first, second = sample.model(image), sample.model(image.flip(-1))
    assert first.isfinite().all()
    assert float(first.std()) > 1e-2
    assert float((first - second).abs().max()) > 1e-3
    assert sample.dynamic == {"x": {0: "batch"}}


def test_size_is_what_the_weights_were_trained_for() -> None:
    assert load("timm:resnet10t").args[0].shape == (1, 3, 176, 176)


@pytest.mark.parametrize("name", ["resnet10t", "vit_tiny_patch16_224", "swin_tiny_patch4_window7_224"])
def test_another_size(name: str) -> None:
    sample = load(f"timm:{name}", size=(64, 96))
    assert sample.args[0].shape == (1, 3, 64, 96)
    with torch.no_grad():
        assert sample.model(*sample.args).shape == (1, 1000)


def test_unknown_tag() -> None:
    with pytest.raises(CompatError, match="unknown timm model 'resnet19'; did you mean 'resnet1"):
        load("timm:resnet19")
