"""Swin: windows put back into images.

Source: https://github.com/microsoft/Swin-Transformer/blob/main/models/swin_transformer.py#L46
"""

from typing import Any

from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import without_tracing


# The original divides the number of windows by that of one image, int(windows.shape[0] / (H * W / h / w)). This makes a
# constant of the batch in both exporters, without a warning.
@rewrite("*.window_reverse", needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def window_reverse(
    windows: Tensor,
    window_size: Any = None,
    H: Any = None,  # noqa: N803  (as Swin calls them, for calls by keyword)
    W: Any = None,  # noqa: N803
    *rest: Any,
    **other: Any,
) -> Tensor:
    """Puts windows back into images.

    Declines: other arguments than (windows, window_size, H, W), and windows that are not (N, h, w, C).

    Math: all windows (B H/h W/w, h, w, C) become images (B, H, W, C). H, W and the window's size h, w are given; B
          follows from the number of windows.
    """
    if rest or other or H is None or W is None or isinstance(H, (tuple, list)):
        decline("wanted the arguments (windows, window_size, H, W)")
    height, width = window_size if isinstance(window_size, (tuple, list)) else (window_size, window_size)
    with without_tracing():
        shape = tuple(windows.shape)
    if len(shape) != 4 or shape[1:3] != (height, width):
        decline(f"wanted windows (N, {height}, {width}, C), got {shape}")
    channels = windows.shape[-1]
    grid = windows.reshape(-1, H // height, W // width, height, width, channels)
    return grid.permute(0, 1, 3, 2, 4, 5).reshape(-1, H, W, channels)
