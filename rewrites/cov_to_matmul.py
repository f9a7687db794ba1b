"""torch.cov -> a matrix product of the deviations.

Math:   with weights w = f a: mean = sum(w x) / sum(w), and d (w d)^T / max(0, sum(w) - correction * sum(w a) / sum(w)).
Source: https://docs.pytorch.org/docs/stable/generated/torch.cov.html
"""

import math

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.tracing import static_size


@rewrite(torch.cov, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def cov_to_matmul(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Covariances of the rows; neither exporter takes it.

    Declines: an input of no axes, and a varying number of rows.
    """
    if input.dim() not in (1, 2):
        decline(f"the input must have 1 or 2 axes, got {input.dim()}")
    if input.dim() == 2 and static_size(input, 0) is None:
        decline("the number of rows must be fixed: of a single row torch makes a number, of more a matrix")
    x = input.unsqueeze(0) if input.dim() == 1 else input
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    given = [w for w in (fweights, aweights) if w is not None]
    weights = math.prod((w.to(x.dtype) for w in given), start=torch.ones_like(x[0]))
    total = weights.sum()
    lost = total / total if aweights is None else (weights * aweights.to(x.dtype)).sum() / total
    deviations = x - (x * weights).sum(1, keepdim=True) / total
    products = (deviations * weights if given else deviations) @ deviations.transpose(0, 1)
    result = products / (total - correction * lost).clamp(min=0)
    return result.reshape(()) if input.dim() == 1 or static_size(input, 0) == 1 else result
