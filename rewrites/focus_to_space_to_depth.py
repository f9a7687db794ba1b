"""YOLO's Focus -> space to depth, where its convolution cannot take over the slices.

Math:   torch_onnx_compat.functional.focus.
Source: ONNX SpaceToDepth; a quarter of the nodes, and 1.4 to 2.3 times as fast in onnxruntime (benchmarks/rewrites.py)
"""

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.focus import focus_order, observed_order


class SlicedBySpaceToDepth(nn.Module):
    """Focus with the slices made by one operator."""

    def __init__(self, conv: nn.Module) -> None:
        super().__init__()
        self.conv = conv

    def forward(self, image: Tensor) -> Tensor:
        """Images (N, C, H, W) -> what conv makes of (N, 4 C, H / 2, W / 2)."""
        result: Tensor = self.conv(torch.ops.torch_onnx_compat.focus(image))
        return result


# Other engines may do worse: ncnn and tflite were measured to get SpaceToDepth wrong.
@rewrite("module:*.Focus", always=True, targets=("onnxruntime",), exactness=Exactness.BITWISE)
def focus_to_space_to_depth(focus: nn.Module) -> nn.Module:
    """Replaces the slices only.

    Declines: slices in another order than YOLOv5's and YOLOX's. What focus_to_conv takes is none of its business.
    """
    block = focus._modules.get("conv")
    conv = next((m for m in focus.modules() if isinstance(m, nn.Conv2d)), None)
    if block is None or conv is None:
        decline("it must hold a block conv that begins with an nn.Conv2d")
    if conv.groups == 1 and conv.dilation == (1, 1) and conv.padding_mode == "zeros":
        # focus_to_conv makes its convolution take the slices over.
        return NotImplemented  # type: ignore[no-any-return]
    channels = conv.in_channels // 4
    if observed_order(focus, channels) != focus_order(channels):
        decline("its slices must come in YOLOv5's order")
    return SlicedBySpaceToDepth(block)
