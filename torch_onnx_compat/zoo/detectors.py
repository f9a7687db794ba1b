"""Makes an untrained torchvision detector find a few things.

Fresh class heads score every box below the threshold, so that an export of the detector compares nothing with nothing.
"""

from __future__ import annotations

import math
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

FEW = 20
"""Candidates above the score threshold, before non-maximum suppression, on the picture that was given."""
SPREAD = 3.0
"""Standard deviation of the class logits, as trained ones have."""

_HEADS = ("roi_heads.box_predictor", "head.classification_head")
_LAST_LAYERS = re.compile(r"cls_score|cls_logits|module_list\.\d+(\.1)?")


def spread_scores(model: nn.Module) -> RemovableHandle:
    """Makes the next run scale and shift the class head so that about `FEW` candidates pass the score threshold.

    Args:
        model: Detector of torchvision, in eval mode; its head is changed in place.
    """
    modules = dict(model.named_modules())
    head = next(modules[name] for name in _HEADS if name in modules)
    threshold = float(getattr(model, "score_thresh", None) or modules["roi_heads"].score_thresh)
    if "head.regression_head.bbox_ctrness" in modules:  # FCOS: score = sqrt(class x centre-ness), and that is about 0.5
        threshold = threshold**2 / 0.5
    softmax = not hasattr(head, "cls_logits")  # RetinaNet and FCOS score each class by a sigmoid of its own

    def spread(_: nn.Module, __: Any, output: Any) -> Any:
        logits = output[0] if isinstance(output, tuple) else output
        scale = SPREAD / float(logits.std())
        offset = torch.full(logits.shape[-1:], -float(logits.mean()) * scale)
        candidates = (logits * scale + offset).flatten(0, -2)
        if softmax:
            offset[0] += _background_shift(candidates, threshold)
        else:
            offset += _class_shift(candidates, threshold)
        _rescale(head, scale, offset)
        logits = logits * scale + offset
        return (logits, *output[1:]) if isinstance(output, tuple) else logits

    handle: RemovableHandle = head.register_forward_hook(spread)
    return handle


def _rescale(head: nn.Module, scale: float, offset: Tensor) -> None:
    """Changes the layers that compute the class logits, for however many anchors, as the logits were changed."""
    for name, layer in head.named_modules():
        if _LAST_LAYERS.fullmatch(name) and isinstance(layer, (nn.Linear, nn.Conv2d)) and layer.bias is not None:
            layer.weight.mul_(scale)
            layer.bias.mul_(scale).view(-1, len(offset)).add_(offset)


def _class_shift(logits: Tensor, threshold: float) -> float:
    """What to add to every class so that `FEW` sigmoids exceed the threshold."""
    return math.log(threshold / (1 - threshold)) - _between(logits)


def _background_shift(logits: Tensor, threshold: float) -> float:
    """What to add to class 0, the background, so that `FEW` probabilities of other classes exceed the threshold."""
    classes = logits[:, 1:].double().exp()
    rest = classes / threshold - classes.sum(dim=-1, keepdim=True)  # the background's share at the threshold
    return _between(rest.clamp(min=1e-9).log() - logits[:, :1])


def _between(values: Tensor) -> float:
    """Halfway between the last of the `FEW` largest and the next: rounding moves no candidate over the threshold."""
    top = values.flatten().topk(min(FEW + 1, values.numel())).values
    return float(top[-2:].mean())
