"""torch.histc -> the sum of a comparison with each bin.

Math:   floor((x - min) * bins / (max - min)) is the bin, the last one for max itself; what lies outside is not counted.
Source: https://docs.pytorch.org/docs/stable/generated/torch.histc.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import constant


@rewrite(torch.histc, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def histc_to_counts(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Histogram; stock TorchScript has no symbolic for it.

    Declines: bounds of the data.
    """
    x = input.reshape(-1)
    if min == max == 0:
        decline("min and max must be given; histograms between bounds of the data depend on its values")
    cell = torch.floor((x - min) * bins / (max - min)).clamp(max=bins - 1)
    cell = torch.where((x >= min) & (x <= max), cell, torch.full_like(cell, -1))
    return (cell.unsqueeze(-1) == constant(range(bins), input)).to(input.dtype).sum(0)
