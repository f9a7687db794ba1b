"""torch.special.xlog1py -> x log(1 + y), 0 where x is.

Math:   by definition; NaN where y is.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.xlog1py
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.special.xlog1py, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def xlog1py_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product with a logarithm; stock TorchScript has no symbolic, dynamo takes no numbers."""
    y = other if isinstance(other, Tensor) else torch.full((), other)
    product = input * torch.log1p(y)
    return torch.where((torch.as_tensor(input) == 0) & ~torch.isnan(y), torch.zeros_like(product), product)
