"""YOLO's Focus: its slicing as a custom operator, and a probe for the slicing of a module of that name.

Source: https://github.com/ultralytics/yolov5/blob/v7.0/models/common.py#L168
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from torch_onnx_compat.catalogue.entry import decline


@torch.library.custom_op("torch_onnx_compat::focus", mutates_args=())
def focus(image: Tensor) -> Tensor:
    """Moves the four cells of every 2 x 2 patch into channels: (N, C, H, W) -> (N, 4 C, H / 2, W / 2).

    Args:
        image: Picture (N, C, H, W); H and W must be even.

    Returns:
        First the upper left cells of all channels, then the lower left, the upper right and the lower right ones.
    """
    return torch.cat([image[..., row::2, column::2] for column in (0, 1) for row in (0, 1)], 1)


@focus.register_fake
def _(image: Tensor) -> Tensor:
    batch, channels, height, width = image.shape
    return image.new_empty((batch, 4 * channels, height // 2, width // 2))


class Cell(NamedTuple):
    """The content of one output channel of a slicing: a cell of every 2 x 2 patch of an input channel."""

    channel: int
    row: int
    column: int


def focus_order(channels: int) -> list[Cell]:
    """The cells in the channels of `focus`, in order."""
    return [Cell(channel, row, column) for column in (0, 1) for row in (0, 1) for channel in range(channels)]


def observe_order(module: nn.Module, channels: int) -> list[Cell]:
    """Runs a module on a probe; returns the cells in the channels that it passes to its child `conv`, in order.

    Args:
        module: A module with a child `conv`; it is not changed.
        channels: Channels of its input.

    Raises:
        Declined: The input of `conv` is no permutation of the cells of the 2 x 2 patches.
    """
    copied_module = copy.copy(module)
    copied_module.__dict__["_modules"] = {**module._modules, "conv": nn.Identity()}
    probe = torch.arange(1 - 24 * channels, 1, dtype=torch.float32).reshape(1, channels, 4, 6)
    try:
        with torch.no_grad():
            result = copied_module(probe)
    except Exception as error:
        decline(f"slicing a probe (1, {channels}, 4, 6) failed with {type(error).__name__}: {error}")
    patches = {
        probe[0, channel, row, column].item(): Cell(channel, row, column)
        for channel in range(channels)
        for row in (0, 1)
        for column in (0, 1)
    }
    firsts = (
        result[0, :, 0, 0].tolist() if isinstance(result, Tensor) and result.shape == (1, 4 * channels, 2, 3) else []
    )
    order = [patches[first] for first in firsts if first in patches]
    if len(set(order)) != 4 * channels or not torch.equal(result, _slice_cells(probe, order)):
        decline("what it hands to conv is not the four cells of every 2 x 2 patch")
    return order


def _slice_cells(image: Tensor, order: list[Cell]) -> Tensor:
    return torch.stack([image[:, c.channel, c.row :: 2, c.column :: 2] for c in order], 1)
