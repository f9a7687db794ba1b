"""torch.corrcoef -> a matrix product of the deviations, scaled.

Math:   with d the deviations from the rows' means and s the roots of their sums of squares, d d^T / s / s^T,
        limited to -1..1.
Source: https://docs.pytorch.org/docs/stable/generated/torch.corrcoef.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.corrcoef, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def corrcoef_to_matmul(input: Tensor) -> Tensor:
    """Correlations of the rows; neither exporter takes it.

    Declines: a single row, and a varying number of rows.
    """
    if input.dim() != 2 or static_size(input, 0) in (None, 1):
        decline("the input must have several rows, of fixed number: of a single one torch makes a number")
    deviations = input - input.mean(1, keepdim=True)
    scale = (deviations * deviations).sum(1, keepdim=True).sqrt()
    products = deviations @ deviations.transpose(0, 1)
    return (products / scale / scale.transpose(0, 1)).clamp(-1, 1)
