"""torch.xlogy -> x log(y), 0 where x is.

Math:   by definition; NaN where y is.
Source: https://docs.pytorch.org/docs/stable/special.html#torch.special.xlogy
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite((torch.xlogy, torch.special.xlogy), needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def xlogy_to_where(input: Tensor | float, other: Tensor | float) -> Tensor:
    """Product with a logarithm; stock TorchScript has no symbolic for it, stock dynamo loses NaN."""
    y = other if isinstance(other, Tensor) else torch.full((), other)
    product = input * torch.log(y)
    return torch.where((torch.as_tensor(input) == 0) & ~torch.isnan(y), torch.zeros_like(product), product)
