"""YOLO's Focus, which slices an image into the cells of 2 x 2 patches before a convolution.

The slices become part of the convolution. Where that cannot be, they become one operator SpaceToDepth.
"""

import copy

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.focus import Cell, focus_order, observe_order


@rewrite("module:*.Focus", always=True, exactness=Exactness.ROUNDING)
def focus_to_conv(focus: nn.Module) -> nn.Module:
    """Replaces Focus by its own conv block, around a convolution that needs no slices.

    Declines: anything but 2 x 2 slices, in any order, before a plain nn.Conv2d of one group and no dilation.

    Math: a kernel over the slices is a kernel over the image: what it holds for the cell (row, column) of the 2 x 2
          patch (i, j) is at (2 i + row, 2 j + column), with stride 2 and twice the padding.
    Source: https://github.com/ultralytics/yolov5/issues/4825: what YOLOv5 itself did to its Focus in version 6
    """
    block = focus._modules.get("conv")
    conv = block if type(block) is nn.Conv2d else getattr(block, "conv", None)
    if block is None or type(conv) is not nn.Conv2d:
        decline(f"its conv must be, or hold as conv, an nn.Conv2d, got {type(conv).__name__}")
    if conv.groups != 1 or conv.dilation != (1, 1):
        decline(f"its convolution must have one group and no dilation, got {conv.groups} and {conv.dilation}")
    if conv.padding_mode != "zeros" or isinstance(conv.padding, str):
        decline(f"its padding must be a number of zeros, got {conv.padding!r} of mode {conv.padding_mode!r}")
    if conv._forward_hooks or conv._forward_pre_hooks:
        decline("its convolution has hooks")
    if focus.training:
        decline("it is in training mode")
    fused = _fuse(conv, observe_order(focus, conv.in_channels // 4))
    replacement = fused if block is conv else _exchange(block, conv, fused)
    _check_on_probe(focus, replacement, fused)
    return replacement


@torch.no_grad()
def _fuse(conv: nn.Conv2d, order: list[Cell]) -> nn.Conv2d:
    channels, kernel = conv.in_channels // 4, (2 * conv.kernel_size[0], 2 * conv.kernel_size[1])
    weight = conv.weight.new_empty((conv.out_channels, channels, *kernel))
    for k, (channel, row, column) in enumerate(order):
        weight[:, channel, row::2, column::2] = conv.weight[:, k]
    stride = (2 * conv.stride[0], 2 * conv.stride[1])
    padding = (2 * int(conv.padding[0]), 2 * int(conv.padding[1]))
    # The weight that is drawn here is replaced below; on the meta device it costs nothing.
    fused = nn.Conv2d(channels, conv.out_channels, kernel, stride, padding, bias=False, device="meta")
    fused.weight = nn.Parameter(weight)
    fused.bias = conv.bias
    return fused


def _exchange(block: nn.Module, conv: nn.Module, fused: nn.Module) -> nn.Module:
    """The block with another convolution; its other children are the same objects."""
    # A deep copy, so that a forward that is a bound method (YOLOv5 after fuse()) is bound to the copy.
    memo = {id(part): part for part in (*block.children(), *block.parameters(recurse=False))}
    memo[id(conv)] = fused
    return copy.deepcopy(block, memo)


@torch.no_grad()
def _check_on_probe(focus: nn.Module, replacement: nn.Module, conv: nn.Conv2d) -> None:
    image = torch.linspace(-1, 1, conv.in_channels * 256).sin().reshape(1, -1, 16, 16).to(conv.weight)
    wanted, got = focus(image), replacement(image)
    if got.shape != wanted.shape or not torch.allclose(got, wanted, rtol=1e-2, atol=1e-2 * float(wanted.abs().max())):
        decline("its conv block does more than convolve what it is handed")


class SlicedBySpaceToDepth(nn.Module):
    """Focus with the slices made by one operator."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, image: Tensor) -> Tensor:
        """Images (N, C, H, W) to what conv makes of (N, 4 C, H / 2, W / 2)."""
        return self.conv(torch.ops.torch_onnx_compat.focus(image))


# For onnxruntime only: ncnn and tflite were measured to get SpaceToDepth wrong.
@rewrite("module:*.Focus", always=True, targets=("onnxruntime",), exactness=Exactness.BITWISE)
def focus_to_space_to_depth(focus: nn.Module) -> nn.Module:
    """Replaces the slices by one operator; a Focus that focus_to_conv replaces is left to it.

    Declines: slices in another order than YOLOv5's and YOLOX's.

    Math: torch_onnx_compat.functional.focus.
    Source: ONNX SpaceToDepth; a quarter of the nodes, and 1.4 to 2.3 times as fast in onnxruntime
            (benchmarks/rewrites.py)
    """
    block = focus._modules.get("conv")
    conv = next((m for m in focus.modules() if isinstance(m, nn.Conv2d)), None)
    if block is None or conv is None:
        decline("it must hold a block conv that begins with an nn.Conv2d")
    if conv.groups == 1 and conv.dilation == (1, 1) and conv.padding_mode == "zeros":
        return NotImplemented  # left to focus_to_conv
    channels = conv.in_channels // 4
    if observe_order(focus, channels) != focus_order(channels):
        decline("its slices must come in YOLOv5's order")
    return SlicedBySpaceToDepth(block)
