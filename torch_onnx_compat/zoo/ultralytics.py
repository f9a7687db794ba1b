"""Models of ultralytics: every YAML that it ships, at every scale, as ``yolo11n-seg``."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import ultralytics
from torch import Tensor, nn
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals
from ultralytics.nn import tasks
from ultralytics.utils import YAML
from ultralytics.utils.downloads import attempt_download_asset

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.zoo.sample import DEFAULT, SEED, Sample, Size, image_sample
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
    return replace(sample, metadata=describe(sample.model, images))


def build_trained(name: str, weights: str, size: Size | None = None) -> Sample:
    """Builds one model with the weights that ultralytics downloads; it has one set of each, which is the default."""
    if name not in _files():
        raise unknown_name("ultralytics model", name, names())
    if weights != DEFAULT:
        raise unknown_name(f"ultralytics weights of {name}", weights, [DEFAULT])
    with redirect_stdout(sys.stderr):
        return load_checkpoint(Path(attempt_download_asset(f"{name}.pt")), size)


def load_checkpoint(path: Path, size: Size | None = None) -> Sample:
    """A model out of ultralytics' own file, which holds pickled modules.

    The file is read with ``weights_only=True``. Of its classes only modules of ultralytics and of torch.nn are let in,
    so that nothing else in it can run.

    Args:
        path: A checkpoint, ``best.pt``.
        size: Height and width of the example picture; those that it was trained at by default.

    Raises:
        CompatError: The file is no such checkpoint, or holds other classes.
    """
    try:
        classes = [_module_class(path, name) for name in get_unsafe_globals_in_checkpoint(path)]
        with safe_globals(classes):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        first = str(error).strip().splitlines()[0]
        raise CompatError(f"{path}: cannot be read as a checkpoint of ultralytics: {first}") from error
    model = (checkpoint.get("ema") or checkpoint.get("model")) if isinstance(checkpoint, dict) else None
    if not isinstance(model, tasks.BaseModel):
        raise CompatError(
            f"{path}: holds no model of ultralytics; if it holds a state_dict, name the architecture and give it as "
            f"its weights: timm:NAME --weights {path}, or file.py:factory likewise."
        )
    arguments = {
        **(checkpoint.get("train_args") or {}),
        **(own if isinstance(own := getattr(model, "args", None), dict) else {}),
    }
    side = int(arguments.get("imgsz") or (224 if isinstance(model, tasks.ClassificationModel) else 640))
    images = torch.rand(1, 3, *(size or (side, side)), generator=torch.Generator().manual_seed(SEED))
    _forget_pictures(model)
    sample = image_sample(model.float().eval(), images, {0: "batch"})
    return replace(sample, metadata=describe(sample.model, images))


def describe(model: Any, images: Tensor) -> dict[str, str]:
    """The metadata by which ultralytics' own `YOLO("model.onnx")` knows a file: the task, classes and strides.

    Args:
        model: A model of ultralytics.
        images: Example pictures (N, C, H, W).
    """
    told = {
        "task": tasks.guess_model_task(model),
        "names": model.names,
        "stride": int(max(model.stride)),
        "imgsz": list(images.shape[-2:]),
        "channels": images.shape[1],
        "end2end": bool(getattr(model, "end2end", False)),
        "kpt_shape": getattr(model.model[-1], "kpt_shape", None),
    }
    return {key: str(value) for key, value in told.items() if value is not None}


def _module_class(path: Path, name: str) -> Any:
    """A class that a checkpoint names, if it is a module of ultralytics or torch."""
    home, _, attribute = name.rpartition(".")
    if home.startswith(("ultralytics.nn.", "torch.nn.modules.")):
        found = getattr(importlib.import_module(home), attribute, None)
        if isinstance(found, type) and issubclass(found, nn.Module):
            return found
    raise CompatError(
        f"{path}: refers to {name}, which is no module of ultralytics or torch.nn and might run code. If you trust the "
        f"file, load it yourself in a factory: file.py:factory."
    )


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
