"""torch.count_nonzero -> the sum of what differs from 0.

Math:   NaN differs from 0.
Source: https://docs.pytorch.org/docs/stable/generated/torch.count_nonzero.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.count_nonzero, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def count_nonzero_to_sum(input: Tensor, dim: Any = None) -> Tensor:
    """Number of non-zero cells; stock TorchScript has no symbolic for it."""
    nonzero = (input != 0).to(torch.int64)
    return nonzero.sum() if dim is None else nonzero.sum(dim)
