"""torch.heaviside -> Where.

Math:   1 above 0, 0 below, the given value at 0; 0 for NaN.
Source: https://docs.pytorch.org/docs/stable/generated/torch.heaviside.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.heaviside, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def heaviside_to_where(input: Tensor, values: Tensor) -> Tensor:
    """Step function; stock TorchScript has no symbolic for it, stock dynamo errs on infinities and NaN."""
    return torch.where(input == 0, values, (input > 0).to(input.dtype))
