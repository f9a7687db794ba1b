"""torch.vander -> Pow.

Math:   column j holds the powers N - 1 - j, or j if increasing.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.powers import powers
from torch_onnx_compat.tracing import static_size


@rewrite(torch.vander, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def vander_to_pow(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of a vector's elements; stock TorchScript lacks it, dynamo fixes its length."""
    count = static_size(x, 0) if N is None else N
    return powers(x, x.shape[0] if count is None else count, increasing=increasing)
