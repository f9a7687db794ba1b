"""F.affine_grid -> sums of products with the coordinates of each axis.

Math:   torch_onnx_compat.functional.affine_grid.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.affine_grid import affine_grid


@rewrite(nn.functional.affine_grid, needed_on=("torchscript",), opset=(11, 19), exactness=Exactness.ROUNDING)
def affine_grid_to_sum(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Tensor:
    """Grid (N, H, W, 2) or (N, D, H, W, 3) of affine maps; stock TorchScript errs on a batch of one below opset 20."""
    return affine_grid(theta, size, bool(align_corners))
