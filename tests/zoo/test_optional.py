"""Zoos whose packages are optional: families, pictures of another size, outputs that depend on the input."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.zoo import family, find, load

MODELS = [
    pytest.param("ultralytics:yolo11n", (64, 64), "yolo11", {"x": {0: "batch"}}, id="yolo"),
    pytest.param("ultralytics:yolov8n-seg", (64, 96), "yolov8-seg", {"x": {0: "batch"}}, id="yolo segment"),
    pytest.param(
        "ultralytics:yolo11-cls-resnet18", (64, 64), "yolo11-cls-resnet18", {"x": {0: "batch"}}, id="torchvision"
    ),
    pytest.param("smp:unet-resnet18", (64, 64), "unet", {"x": {0: "batch"}}, id="unet"),
    pytest.param("smp:deeplabv3plus-tu-resnet18", (64, 64), "deeplabv3plus", {"x": {0: "batch"}}, id="timm's encoder"),
    pytest.param(
        "transformers:bert", None, "text", {key: {0: "batch"} for key in ("input_ids", "attention_mask")}, id="bert"
    ),
    pytest.param("transformers:vit", (64, 64), "vision", {"pixel_values": {0: "batch"}}, id="vit"),
    pytest.param("transformers:wav2vec2", None, "audio", {"input_values": {0: "batch"}}, id="wav2vec2"),
    pytest.param("torchaudio:hubert", None, "encoder", {"waveforms": {0: "batch", 1: "time"}}, id="hubert"),
    pytest.param("torchaudio:MFCC", None, "transform", {"waveform": {0: "batch", 1: "time"}}, id="mfcc"),
    pytest.param(
        "transformers:t5",
        None,
        "text to text",
        {key: {0: "batch"} for key in ("input_ids", "attention_mask", "decoder_input_ids")},
        id="t5",
    ),
]
PACKAGES = {
    "ultralytics": "ultralytics",
    "smp": "segmentation_models_pytorch",
    "transformers": "transformers",
    "torchaudio": "torchaudio",
}


def _needs(source):
    if importlib.util.find_spec(PACKAGES[source]) is None:
        pytest.skip(f"{PACKAGES[source]} is not installed")


def _outputs(sample, inputs):
    with torch.no_grad():
        result = sample.model(**inputs)
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize(("spec", "size", "kind", "dynamic"), MODELS)
def test_a_model(spec, size, kind, dynamic):
    _needs(spec.partition(":")[0])
    first, second = load(spec, size).validate(spec), load(spec, size)
    assert family(spec) == kind
    assert first.dynamic == dynamic
    if size:
        assert all(value.shape == (1, 3, *size) for value in first.inputs.values())
    wanted = _outputs(first, first.inputs)
    assert not first.model.training
    assert all(output.isfinite().all() for output in wanted)
    assert all(torch.equal(a, b) for a, b in zip(wanted, _outputs(second, second.inputs), strict=True))
    changed = {name: value.flip(-1) for name, value in first.inputs.items()}
    largest = max(float((a - b).abs().max() / a.std()) for a, b in zip(wanted, _outputs(first, changed), strict=True))
    assert largest > 1e-2


@pytest.mark.parametrize(
    ("source", "some", "least"),
    [
        ("ultralytics", {"yolo11n", "yolo11x-seg", "yolov5n-p6", "yolov10n", "rtdetr-l", "yolov8n-ghost"}, 200),
        ("smp", {"unet-resnet18", "dpt-tu-vit_tiny_patch16_224"}, 700),
        ("transformers", {"bert", "clip", "whisper", "gpt2"}, 60),
        ("torchaudio", {"conformer", "wav2vec2", "MelSpectrogram", "Resample"}, 30),
    ],
)
def test_names(source, some, least):
    _needs(source)
    names = find(source).names()
    assert names == sorted(names)
    assert some <= set(names)
    assert len(names) >= least
    with pytest.raises(CompatError, match=r"unknown .* model 'no-such'"):
        find(source).build("no-such")


def test_families_of_the_zoos_that_are_always_there():
    assert family("timm:resnet10t.c3_in1k") == "resnet"
    assert family("torchvision:ssd300_vgg16") == "detection.ssd"
    assert family("folder/my_model.py:build_it") == "build"


@pytest.mark.parametrize("source", PACKAGES)
def test_a_zoo_that_is_not_installed_is_one_error(source, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGES[source], None)
    for name in [n for n in sys.modules if n.startswith(f"torch_onnx_compat.zoo.{source}")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(CompatError, match=f"zoo '{source}' needs '{PACKAGES[source]}', which is not installed"):
        find(source)


@pytest.mark.slow
def test_every_tiny_transformer_runs():
    _needs("transformers")
    for name in find("transformers").names():
        sample = load(f"transformers:{name}")
        assert _outputs(sample, sample.inputs), name


def test_ultralytics_reads_our_file_as_its_own(tmp_path):
    _needs("ultralytics")
    from ultralytics import YOLO

    sample = load("ultralytics:yolov8n-pose", (64, 64))
    path = tmp_path / "pose.onnx"
    export_compat(sample.model, sample.args, path, dynamic="batch")
    model = YOLO(path)
    (found,) = model.predict(np.zeros((64, 64, 3), np.uint8), imgsz=64, verbose=False)
    assert model.task == "pose"
    assert found.names == sample.model.names
    assert found.keypoints.shape[1:] == (17, 3)
