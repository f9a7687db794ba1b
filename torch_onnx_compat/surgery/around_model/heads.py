"""Knows which outputs of ultralytics' detectors are boxes and scores; other detectors have to be declared.

A head is recognised by its attributes, not by its class: ``nc``, the number of classes, with ``reg_max`` (distances in
cells; channels first) or ``num_queries`` (a transformer's queries; boxes 0..1).
"""

from __future__ import annotations

from typing import Any

from torch import nn

from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.surgery.around_model.detections import Detections


def detections_of(model: nn.Module, form: Any) -> Detections:
    """The declaration of a known detector's outputs.

    Args:
        model: The detector.
        form: The `form` of the Detections.

    Raises:
        CompatError: The head is of no known kind, gives final detections already, or has rotated boxes.
    """
    suppressing = [m for m in model.modules() if isinstance(getattr(m, "nms_thresh", None), float)]
    if suppressing:
        raise ArgumentError(
            f"postprocess={form!r}: {type(suppressing[0]).__name__} suppresses overlapping boxes itself; leave it out."
        )
    for head in model.modules():
        classes = getattr(head, "nc", None)
        if not isinstance(classes, int) or isinstance(classes, bool):
            continue
        if hasattr(head, "num_queries"):
            return Detections(form, classes=classes, box_format="cxcywh")
        if hasattr(head, "reg_max"):
            _check_final(head, form)
            return Detections(form, classes=classes, box_format="cxcywh", channels_first=True)
    raise ArgumentError(
        f"postprocess={form!r}: {type(model).__name__} holds no detection head of a known kind; declare it: "
        f"postprocess=Detections({form!r}, boxes=..., scores=..., box_format=...)."
    )


def _check_final(head: nn.Module, form: str) -> None:
    kind = type(head).__name__
    if getattr(head, "end2end", False):
        raise ArgumentError(
            f"postprocess={form!r}: {kind} gives final detections, of which none overlap; leave it out, or set "
            f"end2end=False on the head to get all boxes."
        )
    if hasattr(head, "ne"):  # ultralytics' name for the number of channels of the angle
        raise ArgumentError(f"postprocess={form!r}: {kind} gives rotated boxes, and suppression is of upright ones.")
