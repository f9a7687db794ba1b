"""torch.complex -> a pair of real tensors, which whatever follows computes with.

Math:   torch_onnx_compat.functional.complex.
Source: https://docs.pytorch.org/docs/stable/generated/torch.complex.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.complex import Pair


@rewrite(torch.complex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def complex_to_pair(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Pair:
    """Puts two tensors side by side.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    return Pair(*torch.broadcast_tensors(real, imag))
