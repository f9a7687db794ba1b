"""torch.polar -> a pair of real tensors, which whatever follows computes with.

Math:   abs (cos angle + i sin angle).
Source: https://docs.pytorch.org/docs/stable/generated/torch.polar.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair, polar


@rewrite(torch.polar, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def polar_to_pair(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Pair:
    """Real and imaginary parts from lengths and angles.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    return polar(abs, angle)
