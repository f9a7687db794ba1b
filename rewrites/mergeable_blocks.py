"""Blocks that merge for inference, such as RepVGG's and MobileOne's."""

import copy
import functools
import inspect
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite

_METHODS = ("fuse", "reparameterize", "switch_to_deploy", "convert_to_deploy", "fuse_repvgg_block", "fuse_convs")
"""Merging methods in timm, RepVGG, RT-DETR, YOLOv7, ultralytics; each returns a new block or changes its own."""

_TOLERANCE = 1e-4
"""How far a merged block may be off on the probe, relative to its largest value."""

_SIZE = 16
"""Pixels of the probe in each direction."""


@rewrite("module:*", always=True, exactness=Exactness.ROUNDING)
def reparameterized_blocks(block: nn.Module) -> nn.Module:
    """Merges a block's branches on a copy, where a probe says that its result stays the same.

    Declines: a block in training mode, hooks inside, weights that are not float32 or float64, a method that fails, and
    a merged block whose result differs.

    Math: convolutions and batch norms are linear at inference, so parallel and consecutive ones add up to one
          convolution; each block computes it by its own method.
    Source: https://arxiv.org/abs/2101.03697 (RepVGG: Making VGG-style ConvNets Great Again), section 3.3
    """
    method = _method(type(block))  # type: ignore[arg-type]
    if not method or _is_conv_and_norm(block):
        return NotImplemented
    parts = list(block.modules())
    if any(part.training for part in parts):
        decline("it is in training mode")
    if any(part._forward_hooks or part._forward_pre_hooks for part in parts):
        decline("a module in it has hooks, which the merged block would not run")
    if any(tensor.dtype not in (torch.float32, torch.float64) for tensor in block.parameters()):
        decline("its weights are not float32 or float64, and would be rounded once more")
    merged = _merge(block, method)
    if len(list(merged.modules())) >= len(parts):
        return NotImplemented  # was merged before
    return merged if _is_same(block, merged, method) else NotImplemented


@functools.cache
def _method(kind: Any) -> str:
    """Name of the class's method that merges a block and wants no arguments; empty if there is none."""
    for name in _METHODS:
        method = getattr(kind, name, None)
        if inspect.isfunction(method) and len(inspect.signature(method).parameters) == 1:
            return name
    return ""


def _is_conv_and_norm(block: nn.Module) -> bool:
    """A convolution and its norm, which both exporters merge by themselves."""
    kinds = [type(child).__name__ for child in block.children()]
    return kinds in (["Conv1d", "BatchNorm1d"], ["Conv2d", "BatchNorm2d"], ["Conv3d", "BatchNorm3d"])


@torch.no_grad()
def _merge(block: nn.Module, method: str) -> nn.Module:
    """What a copy of the block merges into."""
    try:
        # A deep copy, since some methods write in place into weights that others hold too.
        merged = copy.deepcopy(block)
        result = getattr(merged, method)()
    except Exception as error:
        decline(f"its {method}() fails: {type(error).__name__}: {error}")
    if isinstance(result, nn.Module):
        merged = result
    elif callable(getattr(merged, "forward_fuse", None)):
        merged.forward = cast(Any, merged.forward_fuse)  # ultralytics leaves this to the caller
    merged.eval()
    return merged


@torch.no_grad()
def _is_same(block: nn.Module, merged: nn.Module, method: str) -> bool:
    """Whether both blocks give the same result on a probe; false where no probe can be made.

    Raises:
        Declined: The merged block fails on the probe, or its result differs.
    """
    for probe in _probes(block):
        try:
            wanted = block(probe)
        except Exception:  # the block wants something else than one tensor of this shape
            continue
        if not isinstance(wanted, Tensor):
            return False
        try:
            got = merged(probe)
        except Exception as error:
            decline(f"it fails after {method}(): {type(error).__name__}: {error}")
        if got.shape != wanted.shape:
            decline(f"{method}() changes its result's shape from {tuple(wanted.shape)} to {tuple(got.shape)}")
        off = float((got - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))
        if not off <= _TOLERANCE:
            decline(f"{method}() changes its result by {off:.2g} of the largest value, more than {_TOLERANCE:g}")
        return True
    return False


def _probes(block: nn.Module) -> Iterator[Tensor]:
    """Inputs that a block may take, by its first layer: images (N, C, H, W) or rows (N, C) and (N, L, C) among them."""
    for part in block.modules():
        channels = getattr(part, "in_channels", getattr(part, "num_features", getattr(part, "in_features", None)))
        if not isinstance(channels, int) or not any(True for _ in part.parameters(recurse=False)):
            continue
        axes = next((n for n in (2, 3) if type(part).__name__.endswith(f"{n}d")), 0)
        rows = [(2, channels), (2, _SIZE, channels), (2, channels, _SIZE)]
        shapes = [(2, channels, *[_SIZE] * axes)] if axes else rows
        like = next(part.parameters(recurse=False))
        for shape in shapes:
            count = torch.Size(shape).numel()
            yield torch.linspace(-1, 1, count).mul(count).sin().reshape(shape).to(like)
        return
