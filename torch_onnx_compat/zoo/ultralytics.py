"""Models of ultralytics: every YAML that it ships, at every scale, as ``yolo11n-seg``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import torch
import ultralytics
from torch import nn
from ultralytics.nn import tasks
from ultralytics.utils import YAML

from torch_onnx_compat.errors import unknown_name
from torch_onnx_compat.zoo.sample import SEED, Sample, Size, image_sample
from torch_onnx_compat.zoo.weights import PICTURES, build_with_seed

PACKAGES = ("ultralytics",)

_FOLDER = Path(ultralytics.__file__).parent / "cfg" / "models"
_CLASSES = {
    "Classify": tasks.ClassificationModel,
    "Depth": tasks.DepthModel,
    "Detect": tasks.DetectionModel,
    "OBB": tasks.OBBModel,
    "Pose": tasks.PoseModel,
    "RTDETRDecoder": tasks.RTDETRDetectionModel,
    "Segment": tasks.SegmentationModel,
    "SemanticSegment": tasks.SemanticSegmentationModel,
    "WorldDetect": tasks.WorldModel,
    "YOLOEDetect": tasks.YOLOEModel,
    "YOLOESegment": tasks.YOLOESegModel,
    "v10Detect": tasks.DetectionModel,
}
"""The class of model by the last layer in the YAML, without the number of a later edition (``Segment26``)."""


def names() -> list[str]:
    """Architectures, with the letter of their scale where they have scales."""
    return sorted(_files())


def family(name: str) -> str:
    """The YAML, i.e. the name without its scale."""
    return _files()[name][0].stem if name in _files() else name


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model, with the outputs that its forward has in eval mode."""
    if name not in _files():
        raise unknown_name("ultralytics model", name, names())
    path, scale = _files()[name]
    config = {**YAML.load(path), "scale": scale, "yaml_file": f"{name}.yaml"}
    for layer in (*config["backbone"], *config["head"]):
        if layer[2] == "TorchVision":
            layer[3][2] = None  # its weights, which it would download
    head = str(config["head"][-1][2])
    kind: Any = _CLASSES[re.sub(r"\d+$", "", head)]
    images = torch.rand(PICTURES, 3, *(size or (640, 640)), generator=torch.Generator().manual_seed(SEED))

    def make() -> nn.Module:
        made: nn.Module = kind(config, ch=3, verbose=False)
        return made

    sample = image_sample(build_with_seed(make, (images,)), images[:1], {0: "batch"})
    _forget_pictures(sample.model)
    return sample


def _forget_pictures(model: nn.Module) -> None:
    """Empties the caches of anchors that the head filled for the pictures it was measured on."""
    for module in model.modules():
        if isinstance(module, tasks.Detect):
            module.shape = None


@cache
def _files() -> dict[str, tuple[Path, str]]:
    """YAML and scale by name."""
    found = {}
    for path in _FOLDER.rglob("*.yaml"):
        scales = YAML.load(path).get("scales") or {"": []}
        for scale in scales:
            found[re.sub(r"^(yolo[a-z]*-?v?\d+)(?![a-z\d])", rf"\g<1>{scale}", path.stem)] = (path, scale)
    return found
