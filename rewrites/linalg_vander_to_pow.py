"""torch.linalg.vander -> powers of a column.

Math:   by definition.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vander.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import constant, static_size


@rewrite(torch.linalg.vander, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_vander_to_pow(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers of each value; stock TorchScript has no symbolic for them.

    Declines: as many powers as there are values, where that may vary.
    """
    count = static_size(x, -1) if N is None else N
    if count is None:
        decline("N must be given where the number of values may vary")
    return x.unsqueeze(-1) ** constant(range(count), like=x)
