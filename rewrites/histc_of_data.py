"""torch.histc between bounds of the data -> the sum of a comparison with each bin.

Math:   torch_onnx_compat.functional.counting.
Source: https://docs.pytorch.org/docs/stable/generated/torch.histc.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.counting import histogram


@rewrite(torch.histc, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def histc_of_data(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram between the least and the greatest value, which neither exporter takes."""
    if not min == max == 0:
        return NotImplemented  # type: ignore[no-any-return]
    low, high = input.min(), input.max()
    same = (low == high).to(input.dtype)
    return histogram(input, bins, low - same, high + same)
