"""Makes an untrained torchvision detector find a few things.

Fresh class heads score every box below the threshold, so that an export of the detector compares nothing with nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor, nn

FEW = 20
"""Candidates above the score threshold, before non-maximum suppression, on the picture that was given."""
SPREAD = 3.0
"""Standard deviation of the class logits, as trained ones have."""

_HEADS = ("roi_heads.box_predictor", "head.classification_head")
_LAST_LAYERS = re.compile(r"cls_score|cls_logits|module_list\.\d+(\.1)?")


def spread_scores(model: nn.Module, images: Sequence[Tensor]) -> None:
    """Scales and shifts the class head, in place, so that about `FEW` candidates pass the model's own score threshold.

    Args:
        model: Detector of torchvision, in eval mode.
        images: Pictures (3, H, W), float32, 0..1.
    """
    modules = dict(model.named_modules())
    head = next(modules[name] for name in _HEADS if name in modules)
    logits = _logits(model, head, images)
    scale = SPREAD / float(logits.std())
    offset = -float(logits.mean()) * scale
    logits = logits * scale + offset
    softmax = not hasattr(head, "cls_logits")  # RetinaNet and FCOS score each class by a sigmoid of its own
    threshold = float(getattr(model, "score_thresh", None) or modules["roi_heads"].score_thresh)
    if "head.regression_head.bbox_ctrness" in modules:  # FCOS: score = sqrt(class x centre-ness), and that is about 0.5
        threshold = threshold**2 / 0.5
    shift = _background_shift(logits, threshold) if softmax else _class_shift(logits, threshold)
    with torch.no_grad():
        for name, layer in head.named_modules():
            if _LAST_LAYERS.fullmatch(name) and isinstance(layer, (nn.Linear, nn.Conv2d)) and layer.bias is not None:
                layer.weight.mul_(scale)
                layer.bias.mul_(scale).add_(offset)
                layer.bias.view(-1, logits.shape[-1])[:, : 1 if softmax else None].add_(shift)


def _logits(model: nn.Module, head: nn.Module, images: Sequence[Tensor]) -> Tensor:
    """Class logits (candidates, classes) that the head computes on the way."""
    seen: list[Tensor] = []
    hook = head.register_forward_hook(lambda _, __, out: seen.append(out[0] if isinstance(out, tuple) else out))
    try:
        with torch.no_grad():
            model(list(images))
    finally:
        hook.remove()
    return seen[0].flatten(0, -2)


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
