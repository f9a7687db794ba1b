"""F.softplus with a low threshold -> softplus below it, the identity above.

Math:   by definition; from 17 on the two agree in float32.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softplus.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nn.functional.softplus, needed_on=("torchscript",), exactness=Exactness.ROUNDING)
def softplus_threshold(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Softplus with its threshold, which stock TorchScript leaves out."""
    if threshold >= 17:
        return NotImplemented  # type: ignore[no-any-return]
    scaled = input * beta
    return torch.where(scaled > threshold, input, torch.nn.functional.softplus(scaled) / beta)
