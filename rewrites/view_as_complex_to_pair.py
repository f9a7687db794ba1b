"""torch.view_as_complex -> a pair of real tensors, which whatever follows computes with.

Math:   torch_onnx_compat.functional.complex.
Source: https://docs.pytorch.org/docs/stable/generated/torch.view_as_complex.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.complex import Pair


# TorchScript knows no complex numbers; dynamo fails on most of what is done with them.
@rewrite(torch.view_as_complex, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def view_as_complex_to_pair(input: Tensor) -> Pair:
    """Takes the real and the imaginary parts from the last axis.

    Stock TorchScript has no complex numbers; stock dynamo has, but few of the functions that meet them.
    """
    return Pair(input[..., 0], input[..., 1])
