"""torch.linalg.vander -> Pow.

Math:   column j holds the powers j.
Source: https://docs.pytorch.org/docs/stable/generated/torch.linalg.vander.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.powers import powers
from torch_onnx_compat.tracing import static_size


@rewrite(torch.linalg.vander, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def linalg_vander_to_pow(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803
    """Powers of the elements of a batch of vectors; stock TorchScript lacks it, dynamo fixes its length."""
    count = static_size(x, -1) if N is None else N
    return powers(x, x.shape[-1] if count is None else count, increasing=True)
