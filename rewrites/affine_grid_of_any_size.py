"""F.affine_grid of a size that varies, or of one cell -> sums of products with the coordinates of each axis.

Math:   torch_onnx_compat.functional.affine_grid; the only cell of an axis lies at 0, where onnxruntime's AffineGrid
        puts it at -1 with align_corners.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.affine_grid.html
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.affine_grid import affine_grid


@rewrite(nn.functional.affine_grid, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def affine_grid_of_any_size(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Tensor:
    """Grid (N, H, W, 2) or (N, D, H, W, 3) of affine maps; stock fixes such sizes, or errs where an axis has one cell.

    A traced size, a tensor, may come to be 1, which only align_corners makes a difference for.
    """
    fails = any(isinstance(n, torch.SymInt) or (type(n) is int and n == 1) for n in size[2:])
    if not fails and not (align_corners and any(type(n) is not int for n in size[2:])):
        return NotImplemented  # type: ignore[no-any-return]
    return affine_grid(theta, size, bool(align_corners))
