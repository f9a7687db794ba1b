"""torch.vander -> powers of a column.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.vander.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import constant, static_size


@rewrite(torch.vander, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def vander_to_pow(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """Powers of each value; stock TorchScript has no symbolic for them.

    Declines: as many powers as there are values, where that may vary.
    """
    count = static_size(x, 0) if N is None else N
    if count is None:
        decline("N must be given where the number of values may vary")
    powers = range(count) if increasing else range(count - 1, -1, -1)
    return x.unsqueeze(1) ** constant(powers, like=x)
