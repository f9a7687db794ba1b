"""Non-maximum suppression after a detector's head: `postprocess=Detections(...)`, or `postprocess="nms"`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from torch_onnx_compat.errors import ArgumentError, unknown_name
from torch_onnx_compat.functional.non_maximum import (
    best_candidates,
    best_pairs,
    compact,
    keep_mask_by_operator,
    keep_mask_dense,
)
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.surgery.around_model.custom import WholeCall
from torch_onnx_compat.surgery.around_model.selectors import Selector

_PLUGIN_INPUTS, _PLUGIN_OUTPUTS = Selector(":detections:input", None), Selector(":detections", None)
"""Places of the inputs and outputs of the engine's own operator; no module can have these names."""

_PLUGIN_CANDIDATES = 4096
"""Pairs of a box and a class, the best ones, in the imitation of the plugin that checks the file."""

ALTERNATIVES = ("nms", "nms-dense", "efficient-nms")
BOX_FORMATS = ("xyxy", "cxcywh", "xywh")


@dataclass(frozen=True)
class Detections:
    """Declares which outputs of a model are boxes and scores, and how they are suppressed.

    The file's outputs are then ``boxes`` (N, D, 4), corners in the model's own units; ``scores`` (N, D); ``classes``
    (N, D), int64, -1 beyond the count; and ``count`` (N,), int64. With ``max_detections=None`` their number
    varies: boxes (D, 4), scores (D,), classes (D,) and ``images`` (D,), the picture that each belongs to.

    Args:
        form: ``"nms"`` uses ONNX's NonMaxSuppression; ``"nms-dense"`` arithmetic that every engine has, in about three
            nodes for each of the `candidates`; ``"efficient-nms"`` TensorRT's plugin, with the plugin's outputs
            ``num_detections`` (N, 1), ``detection_boxes`` (N, D, 4), ``detection_scores`` and ``detection_classes``
            (N, D), without meaning beyond the number, and with a detection for each class of a box.
        boxes: The output that holds the boxes, by its number or name: (N, A, 4).
        scores: The output that holds the scores: (N, A) or (N, A, C). None: they are in the output of the boxes, after
            the four coordinates: (N, A, 4 + C).
        channels_first: Whether these outputs are (N, 4, A) and (N, C, A), or (N, 4 + C, A) as in ultralytics.
        objectness: Whether a column before the class scores multiplies them, as in YOLOv5's own repository.
        classes: How many columns are scores; the other columns, e.g. mask coefficients, are left out. None: all.
        box_format: ``"xyxy"`` corners, ``"cxcywh"`` centre and size, ``"xywh"`` corner and size.
        iou_threshold: A box is dropped if it overlaps a better one of its class by more, 0..1.
        score_threshold: A box is dropped if its score is not above this.
        candidates: How many boxes of a picture take part, the best ones.
        max_detections: How many detections a picture has at most; None for a varying number.
        class_aware: Whether only boxes of one class suppress each other.
    """

    form: Literal["nms", "nms-dense", "efficient-nms"] = "nms"
    boxes: int | str = 0
    scores: int | str | None = None
    channels_first: bool = False
    objectness: bool = False
    classes: int | None = None
    box_format: Literal["xyxy", "cxcywh", "xywh"] = "xyxy"
    iou_threshold: float = 0.45
    score_threshold: float = 0.25
    candidates: int = 100
    max_detections: int | None = 100
    class_aware: bool = True

    def __post_init__(self) -> None:
        if self.form not in ALTERNATIVES:
            raise unknown_name("form of Detections", str(self.form), ALTERNATIVES)
        if self.box_format not in BOX_FORMATS:
            raise unknown_name("box_format of Detections", str(self.box_format), BOX_FORMATS)
        if self.form == "efficient-nms" and self.max_detections is None:
            raise ArgumentError("Detections: efficient-nms has a fixed number of outputs; pass max_detections.")
        self._check_numbers()
        if self.form != "nms-dense":
            import torchvision  # noqa: F401  (defines the operator; a slow import)

    def _check_numbers(self) -> None:
        for name in ("candidates", "max_detections", "classes"):
            value = getattr(self, name)
            is_left_out = value is None and name != "candidates"
            if not is_left_out and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
                raise ArgumentError(f"Detections({name}={value!r}): wanted a whole number from 1.")
        for name in ("iou_threshold", "score_threshold"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not math.isfinite(value):
                raise ArgumentError(f"Detections({name}={value!r}): wanted a number.")
        if not 0 <= self.iou_threshold <= 1:
            raise ArgumentError(f"Detections(iou_threshold={self.iou_threshold!r}): wanted a number from 0 to 1.")

    def suits(self, engine: str) -> bool:
        """Whether an engine may have the operator with which the file ends, of which only TensorRT's has one."""
        return self.form != "efficient-nms" or engine.startswith("tensorrt")

    @property
    def node(self) -> WholeCall | None:
        """The engine's own operator for the detections; None if there is none."""
        if self.form != "efficient-nms":
            return None
        attributes = {
            "plugin_version": "1",
            "score_threshold": float(self.score_threshold),
            "iou_threshold": float(self.iou_threshold),
            "max_output_boxes": self.max_detections,
            "background_class": -1,
            "score_activation": 0,
            "class_agnostic": int(not self.class_aware),
            "box_coding": 0,
        }
        return WholeCall(_PLUGIN_INPUTS, _PLUGIN_OUTPUTS, "TRT", "EfficientNMS_TRT", attributes, has_body=False)

    def candidates_of(self, result: Any) -> tuple[Tensor, Tensor]:
        """The boxes in a result of the model, corners (N, A, 4), and their scores (N, A, C).

        Raises:
            CompatError: An output that was named is not there, or has another shape.
        """
        boxes, scores = self._parts(result)
        return _to_corners(boxes, self.box_format), scores

    def detect(self, result: Any, pad: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Suppresses the boxes in a result of the model.

        Args:
            result: The model's result.
            pad: Whether there may be fewer boxes than `candidates`.

        Returns:
            The detections; and the inputs and outputs of the engine's own operator, empty if it has none.

        Raises:
            CompatError: An output that was named is not there, or has another shape.
        """
        boxes, scores = self.candidates_of(result)
        if self.form != "efficient-nms":
            return self._suppress(boxes, scores, pad), {}
        inputs = {"boxes": boxes.clone(), "scores": scores.clone()}
        outputs = self._imitate_plugin(inputs["boxes"], inputs["scores"])
        return outputs, {
            _PLUGIN_INPUTS.text: inputs,
            _PLUGIN_OUTPUTS.text: {name: value.clone() for name, value in outputs.items()},
        }

    def _suppress(self, boxes: Tensor, scores: Tensor, pad: bool) -> dict[str, Tensor]:
        found = best_candidates(boxes, scores, self.candidates, pad)
        allowed = found.scores > self.score_threshold
        keep_mask = keep_mask_dense if self.form == "nms-dense" else keep_mask_by_operator
        keep = keep_mask(found, allowed, self.iou_threshold, self.class_aware)
        if self.max_detections is None:
            where = keep.nonzero()
            image, place = where[:, 0], where[:, 1]
            each = {n: v[image, place] for n, v in zip(("boxes", "scores", "classes"), found, strict=True)}
            return {**each, "images": image}
        return dict(
            zip(("boxes", "scores", "classes", "count"), compact(found, keep, self.max_detections), strict=True)
        )

    def _imitate_plugin(self, boxes: Tensor, scores: Tensor) -> dict[str, Tensor]:
        count = min(_PLUGIN_CANDIDATES, scores.shape[1] * scores.shape[2])
        found = best_pairs(boxes, scores, count)
        keep = keep_mask_by_operator(found, found.scores > self.score_threshold, self.iou_threshold, self.class_aware)
        assert self.max_detections is not None
        found_boxes, found_scores, classes, number = compact(found, keep, self.max_detections)
        lacking = max(self.max_detections - count, 0)  # the plugin's outputs have a fixed length
        return {
            "num_detections": number.unsqueeze(1).to(torch.int32),
            "detection_boxes": pad(found_boxes, (0, 0, 0, lacking)),
            "detection_scores": pad(found_scores, (0, lacking)),
            "detection_classes": pad(classes.to(torch.int32), (0, lacking)),
        }

    def fit_candidates(self, result: Any) -> Detections:
        """A copy for a model with a fixed number of boxes, which has no more candidates than boxes.

        Raises:
            CompatError: As in `detect`, or the output that is taken for boxes and scores looks like boxes alone.
        """
        self.check_is_whole(result)
        return replace(self, candidates=min(self.candidates, self._parts(result)[0].shape[1]))

    def _parts(self, result: Any) -> tuple[Tensor, Tensor]:
        """Boxes (N, A, 4) and scores (N, A, C)."""
        leaves, _ = tree.flatten(result)
        boxes = self._channels_last(leaves[_number_of("boxes", self.boxes, leaves)][1])
        if self.scores is None:
            boxes, scores = boxes[..., :4], boxes[..., 4:]
        else:
            scores = leaves[_number_of("scores", self.scores, leaves)][1]
            scores = scores.unsqueeze(-1) if scores.dim() == 2 else self._channels_last(scores)
        if boxes.dim() != 3 or scores.dim() != 3 or boxes.shape[-1] != 4 or scores.shape[-1] < 1 + self.objectness:
            raise ArgumentError(
                f"postprocess: boxes of shape {tuple(boxes.shape)} and scores of shape {tuple(scores.shape)}; wanted "
                f"(N, A, 4) and (N, A, C). Say in Detections which outputs they are, and whether channels come first."
            )
        if self.objectness:
            scores = scores[..., 1:] * scores[..., :1]
        if self.classes is not None and self.classes > scores.shape[-1]:
            raise ArgumentError(
                f"Detections(classes={self.classes}): the model's output has scores of {scores.shape[-1]} classes only."
            )
        return boxes, scores if self.classes is None else scores[..., : self.classes]

    def _channels_last(self, output: Tensor) -> Tensor:
        return output.transpose(1, 2) if self.channels_first and output.dim() == 3 else output

    def check_is_whole(self, result: Any) -> None:
        """Looks whether the output that is taken for boxes and scores is boxes alone.

        Raises:
            CompatError: It looks like coordinates, and another output like their scores.
        """
        leaves, _ = tree.flatten(result)
        number = _number_of("boxes", self.boxes, leaves)
        boxes = leaves[number][1]
        if boxes.dim() != 3 or boxes.shape[1] != 4 or self.channels_first or self.scores is not None:
            return
        count = boxes.shape[2]
        others = [i for i, (_, tensor) in enumerate(leaves) if i != number and tensor.dim() in (2, 3)]
        alike = [i for i in others if leaves[i][1].shape[0] == boxes.shape[0] and leaves[i][1].shape[-1] == count]
        if alike:
            raise ArgumentError(
                f"postprocess: output {number} of shape {tuple(boxes.shape)} looks like four coordinates of {count} "
                f"boxes, and output {alike[0]} of shape {tuple(leaves[alike[0]][1].shape)} like their scores; say "
                f"Detections(boxes={number}, scores={alike[0]}, channels_first=True)."
            )

    def left_out(self, result: Any) -> list[str]:
        """Names of the outputs of the model that are neither boxes nor scores."""
        leaves, _ = tree.flatten(result)
        taken = {_number_of(n, w, leaves) for n, w in (("boxes", self.boxes), ("scores", self.scores)) if w is not None}
        return [tree.qualified_name(path) or "output" for i, (path, _) in enumerate(leaves) if i not in taken]


def _number_of(what: str, which: int | str, leaves: list[tuple[tree.Path, Tensor]]) -> int:
    """The number of an output that the caller names."""
    names = [tree.qualified_name(path) or "output" for path, _ in leaves]
    if isinstance(which, str):
        if which not in names:
            raise unknown_name(f"output for the {what}", which, names)
        which = names.index(which)
    if not 0 <= which < len(leaves):
        raise ArgumentError(f"postprocess: the {what} are output {which}, but the model has {len(leaves)}: {names}.")
    return which


def _to_corners(boxes: Tensor, box_format: str) -> Tensor:
    if box_format == "xyxy":
        return boxes
    first, size = boxes[..., :2], boxes[..., 2:]
    lower = first - size / 2 if box_format == "cxcywh" else first
    return torch.cat((lower, lower + size), -1)
