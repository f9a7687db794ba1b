"""F.threshold -> Where.

Math:   x where it exceeds the threshold, else the value; NaN stays.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.threshold.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(torch.nn.functional.threshold, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def threshold_to_where(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Replaces what does not exceed a threshold; stock TorchScript takes a threshold of 0 only.

    Declines: inplace=True.
    """
    if inplace:
        decline("inplace must be False")
    return torch.where(input <= threshold, torch.full_like(input, value), input)
