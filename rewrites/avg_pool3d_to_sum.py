"""F.avg_pool3d, nn.AvgPool3d, with a divisor, or of a single volume -> means of windows of a batch, scaled.

Math:   the mean of a window is its sum, padding included, by the number of its cells.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AvgPool3d.html
"""

import math
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(nn.functional.avg_pool3d, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def avg_pool3d_to_sum(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W); stock ignores the divisor, TorchScript fails without a batch.

    Declines: a divisor with ceil_mode, whose last windows have fewer cells.
    """
    if input.dim() == 4:
        batch = input.unsqueeze(0)
    elif divisor_override is None:
        return NotImplemented  # type: ignore[no-any-return]
    else:
        batch = input
    if divisor_override is None:
        pooled = nn.functional.avg_pool3d(batch, kernel_size, stride, padding, ceil_mode, count_include_pad)
    else:
        if ceil_mode:
            decline("divisor_override needs ceil_mode=False")
        cells = math.prod(kernel_size) if isinstance(kernel_size, (tuple, list)) else kernel_size**3
        pooled = nn.functional.avg_pool3d(batch, kernel_size, stride, padding) * (cells / divisor_override)
    return pooled[0] if input.dim() == 4 else pooled
