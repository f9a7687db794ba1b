"""torch.logcumsumexp -> logsumexp of the beginnings of an axis.

Math:   torch_onnx_compat.functional.running, with -inf, whose exponential is 0, for the cells behind.
Source: https://docs.pytorch.org/docs/stable/generated/torch.logcumsumexp.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.running import running
from torch_onnx_compat.tracing import static_size


@rewrite(torch.logcumsumexp, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def logcumsumexp_to_logsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Running logsumexp; stock TorchScript has none, stock dynamo takes the logarithm of sums that overflow.

    Declines: out=.
    """
    if out is not None:
        decline("out must be None, got a tensor")
    if input.dim() == 0:
        return input.clone()
    size = static_size(input, dim)
    return running(input, dim, size, neutral=-float("inf"), reduce=lambda y: y.logsumexp(-1))
